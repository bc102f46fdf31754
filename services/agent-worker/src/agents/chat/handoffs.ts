import { isJsonObject, type JsonValue } from '@writ/kernel';
import type { SubAgent } from '../../domain/agent/manifest.ts';
import type { ToolOffer, ToolUse } from '../../domain/calls/model-call.ts';
import type { AgentContext, HandoffOutcome } from '../../runtime/agent.ts';
import { callTool, endsTurn, errorResult, type Toolbox, type UseOutcome } from './toolbox.ts';

const HANDOFF = 'handoff_';

const TASK_SCHEMA = JSON.stringify({
  type: 'object',
  properties: {
    task: { type: 'string', description: 'What to do, with all that is needed for it.' },
  },
  required: ['task'],
  additionalProperties: false,
});

/**
 * The sub-agents as tools, in addition to the gateway's tools (AG-3). The handoffs of one turn run
 * concurrently; the model gets the result of each.
 */
export const handoffTools: Toolbox = {
  async offers(ctx) {
    return [...(await ctx.tools()), ...ctx.manifest.subAgents.map(offerOf)];
  },

  async use(ctx, uses, modelCallId, refusals) {
    const targets = new Set(ctx.manifest.subAgents.map(({ name }) => `${HANDOFF}${name}`));
    const handoffs = uses.filter(({ tool }) => targets.has(tool));
    const outcomes = new Map<ToolUse, UseOutcome>();
    const isOver = (at: AgentContext) => endsTurn(at, refusals, [...outcomes.values()]);
    for (const use of uses) {
      if (handoffs.includes(use)) continue;
      if (isOver(ctx)) break;
      outcomes.set(use, await callTool(ctx, use, modelCallId));
    }
    if (!isOver(ctx)) {
      const done = await ctx.all(
        handoffs.map((use) => async (branch: AgentContext) => {
          return isOver(branch) ? undefined : await handOff(branch, use);
        }),
      );
      for (const [index, use] of handoffs.entries()) {
        const outcome = done[index];
        if (outcome !== undefined) outcomes.set(use, outcome);
      }
    }
    return uses.flatMap((use) => outcomes.get(use) ?? []);
  },
};

function offerOf({ name, description }: SubAgent): ToolOffer {
  return {
    name: `${HANDOFF}${name}`,
    description: description || `Delegates a task to ${name} and returns its result.`,
    inputSchemaJson: TASK_SCHEMA,
  };
}

async function handOff(
  ctx: AgentContext,
  { id, tool, argumentsJson }: ToolUse,
): Promise<UseOutcome> {
  const outcome = await ctx.handOff(tool.slice(HANDOFF.length), taskOf(argumentsJson));
  return useOutcome(id, outcome);
}

function useOutcome(id: string, outcome: HandoffOutcome): UseOutcome {
  switch (outcome.kind) {
    case 'replied': {
      const { text, partial } = outcome;
      return { result: { id, text: partial ? `(partial) ${text}` : text, isError: false } };
    }
    case 'timed_out':
      return { result: errorResult(id, outcome.kind, 'The agent did not reply in time.') };
    case 'target_failed':
    case 'target_cancelled': {
      const message = `The agent ended without an answer: ${outcome.stopReason}.`;
      return { result: errorResult(id, outcome.kind, message) };
    }
    case 'no_slot':
      return { result: errorResult(id, outcome.kind, outcome.message) };
    case 'failed':
      return { result: errorResult(id, outcome.stopReason, outcome.message) };
    case 'refused': {
      const { stop, message } = outcome;
      return { result: errorResult(id, stop.stopReason, message), refusal: stop };
    }
  }
}

/** Returns the task in the arguments of a handoff; empty for invalid arguments, which the supervisor rejects. */
function taskOf(argumentsJson: string): string {
  try {
    const args: JsonValue = JSON.parse(argumentsJson);
    return isJsonObject(args) && typeof args.task === 'string' ? args.task : '';
  } catch {
    return '';
  }
}
