import type { ToolOffer, ToolUse, ToolUseResult } from '../../domain/calls/model-call.ts';
import { observationOf } from '../../domain/calls/tool-call.ts';
import type { AgentContext, ProposalOutcome } from '../../runtime/agent.ts';
import type { Stop } from '../../runtime/unwinding.ts';

/** What came of a model's wish to call a tool. */
export interface UseOutcome {
  readonly result: ToolUseResult;
  /** Why it was refused; absent when it was not, whatever came of it. */
  readonly refusal?: Stop;
}

/** The tools of a conversing agent. */
export interface Toolbox {
  /** What the model is told of them. */
  offers(ctx: AgentContext): Promise<readonly ToolOffer[]>;
  /** Has the wishes of one turn reviewed and carried out; answers in their order. */
  use(
    ctx: AgentContext,
    uses: readonly ToolUse[],
    modelCallId: string,
  ): Promise<readonly UseOutcome[]>;
}

/** The gateway's tools, called one after the other (AG-2). */
export const nativeTools: Toolbox = {
  offers: (ctx) => ctx.tools(),
  async use(ctx, uses, modelCallId) {
    const outcomes: UseOutcome[] = [];
    for (const use of uses) outcomes.push(await callTool(ctx, use, modelCallId));
    return outcomes;
  },
};

/** Proposes one call and says what came of it. */
export async function callTool(
  ctx: AgentContext,
  { id, tool, argumentsJson }: ToolUse,
  modelCallId: string,
): Promise<UseOutcome> {
  const outcome = await ctx.tool(tool, argumentsJson, modelCallId);
  switch (outcome.kind) {
    case 'executed':
      return { result: { id, text: textOf(outcome), isError: false } };
    case 'finished':
      return { result: errorResult(id, 'error:not_a_tool', 'The proposal is not a tool call.') };
    case 'refused':
      return {
        result: errorResult(id, outcome.stop.stopReason, outcome.decision.reason),
        refusal: outcome.stop,
      };
    case 'failed': {
      const { stop, result } = outcome;
      return {
        result: errorResult(id, stop.stopReason, result.message),
        // A tool that does not work is an answer like any other.
        ...(result.status !== 'error' && { refusal: stop }),
      };
    }
  }
}

/** What the model is told when there is no result. */
export function errorResult(id: string, error: string, message: string): ToolUseResult {
  return { id, text: JSON.stringify({ error, message }), isError: true };
}

function textOf({ result }: Extract<ProposalOutcome, { kind: 'executed' }>): string {
  return result.contentKind === 'none'
    ? JSON.stringify(observationOf(result))
    : (result.content ?? '');
}
