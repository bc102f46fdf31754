import { isJsonObject, type JsonObject, type JsonValue, textOf } from '@writ/kernel';
import type { ChatTurn, ToolUse, ToolUseResult } from '../calls/model-call.ts';

/**
 * Rebuilds a conversation from stored steps (AG-8): `user_message` with `text`; `assistant_message` with `text` and
 * `tool_calls`, a list of `{id, tool, arguments}`; `tool_result` with `call_id`, `text` and `is_error`. Skips other
 * kinds of steps, calls without a result and results without a call.
 */
export function turnsFromSteps(steps: readonly JsonObject[]): ChatTurn[] {
  const turns: ChatTurn[] = [];
  for (const step of steps) {
    const text = textOf(step.text);
    if (step.kind === 'user_message') turns.push({ role: 'user', text });
    else if (step.kind === 'assistant_message') {
      const toolUses = toolUsesOf(step.tool_calls);
      turns.push({ role: 'assistant', text, ...(toolUses.length > 0 && { toolUses }) });
    } else if (step.kind === 'tool_result') {
      const result = { id: textOf(step.call_id), text, isError: step.is_error === true };
      addResult(turns, result);
    }
  }
  return answeredOnly(turns);
}

function addResult(turns: ChatTurn[], result: ToolUseResult): void {
  const last = turns.at(-1);
  if (last?.role === 'tool') {
    turns[turns.length - 1] = { role: 'tool', results: [...last.results, result] };
  } else if (last?.role === 'assistant' && last.toolUses !== undefined) {
    turns.push({ role: 'tool', results: [result] });
  }
}

/** Removes tool calls without a result and results without a call from the turns, because providers reject both. */
function answeredOnly(turns: readonly ChatTurn[]): ChatTurn[] {
  return turns.flatMap((turn, index): ChatTurn[] => {
    const [before, after] = [turns[index - 1], turns[index + 1]];
    if (turn.role === 'assistant' && turn.toolUses !== undefined) {
      const results = after?.role === 'tool' ? after.results : [];
      const toolUses = turn.toolUses.filter(({ id }) => results.some((each) => each.id === id));
      const { text } = turn;
      return [{ role: 'assistant', text, ...(toolUses.length > 0 && { toolUses }) }];
    }
    if (turn.role !== 'tool') return [turn];
    const uses = before?.role === 'assistant' ? (before.toolUses ?? []) : [];
    const results = turn.results.filter(({ id }) => uses.some((use) => use.id === id));
    return results.length === 0 ? [] : [{ role: 'tool', results }];
  });
}

function toolUsesOf(value: JsonValue | undefined): ToolUse[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isJsonObject).map(({ id, tool, arguments: args }) => ({
    id: textOf(id),
    tool: textOf(tool),
    argumentsJson: JSON.stringify(args ?? {}),
  }));
}
