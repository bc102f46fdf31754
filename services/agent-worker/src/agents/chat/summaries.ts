import type { ChatTurn } from '../../domain/calls/model-call.ts';
import { planSummary } from '../../domain/context/plan-summary.ts';
import { slidingWindow } from '../../domain/context/sliding-window.ts';
import type { AgentContext } from '../../runtime/agent.ts';
import { loadTokenCounter } from './token-counter.ts';
import type { View } from './view.ts';

const INSTRUCTIONS =
  'Summarise this conversation for the one who goes on with it: what was asked, what was found and done, what is open. Keep names, ids and figures. Text only.';

/** What a summary stands for. */
interface Summary {
  readonly turn: ChatTurn;
  /** How many turns after the instructions it takes the place of. */
  readonly covered: number;
}

/**
 * A view in which the model's own summary stands for the older turns once the conversation is over
 * `budget` tokens (AG-8). Each summary is a model call like any other, and takes in the one before. When
 * the model gives none, the older turns are left out.
 */
export function createSummaries(budget: number, keepLast: number): View {
  let summary: Summary | undefined;
  const show: View['show'] = async (ctx, turns) => {
    const count = await loadTokenCounter();
    const headLength = turns.findIndex(({ role }) => role !== 'system');
    const summarised = withSummary(turns, headLength, summary);
    const plan = planSummary(summarised, budget, count, keepLast);
    if (plan === undefined) return summarised;
    const text = await summarise(ctx, plan.older);
    if (text === undefined) return slidingWindow(summarised, budget, count);
    summary = {
      turn: { role: 'user', hidden: 'summary', text: `Summary of what came before:\n${text}` },
      covered: turns.length - headLength - plan.latest.length,
    };
    return withSummary(turns, headLength, summary);
  };
  const memory = {
    save: () => summary,
    restore: (saved: unknown) => {
      summary = saved as Summary | undefined;
    },
  };
  return { show, memory };
}

function withSummary(
  turns: readonly ChatTurn[],
  headLength: number,
  summary: Summary | undefined,
): readonly ChatTurn[] {
  if (summary === undefined) return turns;
  const { turn, covered } = summary;
  return [...turns.slice(0, headLength), turn, ...turns.slice(headLength + covered)];
}

async function summarise(
  ctx: AgentContext,
  older: readonly ChatTurn[],
): Promise<string | undefined> {
  const { model } = ctx.manifest;
  const answer = await ctx.llm({
    model: model.model,
    messages: [
      { role: 'system', text: INSTRUCTIONS },
      { role: 'user', text: older.map(linesOf).join('\n\n') },
    ],
    temperature: 0,
    json: false,
    requireContent: false,
  });
  const text = answer.kind === 'answer' ? answer.text.trim() : '';
  return text === '' ? undefined : text;
}

function linesOf(turn: ChatTurn): string {
  if (turn.role === 'tool') return turn.results.map(({ text }) => `tool: ${text}`).join('\n');
  const uses = turn.role === 'assistant' ? (turn.toolUses ?? []) : [];
  const calls = uses.map(({ tool, argumentsJson }) => `\n(calls ${tool} ${argumentsJson})`);
  return `${turn.role}: ${turn.text}${calls.join('')}`;
}
