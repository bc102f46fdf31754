import type { ToolOffer, ToolUse, ToolUseResult } from '../../domain/calls/model-call.ts';
import { observationOf } from '../../domain/calls/tool-call.ts';
import type { AgentContext, ProposalOutcome } from '../../runtime/agent.ts';
import type { Stop } from '../../runtime/unwinding.ts';
import type { Refusals } from './refusals.ts';

/** The result of a requested tool call. */
export interface UseOutcome {
  readonly result: ToolUseResult;
  /**
   * How the agent stops if it may not continue after this refusal: set when the supervisor, a person or the gateway
   * refused the call, or its outcome is unknown; omitted when the tool failed.
   */
  readonly refusal?: Stop;
}

/** The tools of a chat agent. */
export interface Toolbox {
  /** Returns the tools that the model sees. */
  offers(ctx: AgentContext): Promise<readonly ToolOffer[]>;
  /**
   * Reviews and executes the requested calls of one turn; returns the results in the same order. A refusal at which
   * `refusals` would stop the agent ends the turn: the calls after it are not proposed and have no result (AG-10).
   */
  use(
    ctx: AgentContext,
    uses: readonly ToolUse[],
    modelCallId: string,
    refusals: Refusals,
  ): Promise<readonly UseOutcome[]>;
}

/** The gateway's tools, called sequentially (AG-2). */
export const nativeTools: Toolbox = {
  offers: (ctx) => ctx.tools(),
  async use(ctx, uses, modelCallId, refusals) {
    const outcomes: UseOutcome[] = [];
    for (const use of uses) {
      if (endsTurn(ctx, refusals, outcomes)) break;
      outcomes.push(await callTool(ctx, use, modelCallId));
    }
    return outcomes;
  },
};

/**
 * Whether a turn with these outcomes ends before its next proposal, because a refusal stops the agent. Workers of
 * earlier versions proposed all calls of a turn before they stopped the agent; the proposals that they journaled are
 * replayed.
 */
export function endsTurn(
  ctx: AgentContext,
  refusals: Refusals,
  outcomes: readonly UseOutcome[],
): boolean {
  const refused = outcomes.flatMap(({ refusal }) => refusal ?? []);
  return refusals.wouldStop(refused) && !ctx.hasRecordedProposal();
}

/** Proposes one call and converts its outcome. */
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
        // A failed tool call is not counted as a refusal.
        ...(result.status !== 'error' && { refusal: stop }),
      };
    }
  }
}

/** Returns the result of a call that failed or was refused. */
export function errorResult(id: string, error: string, message: string): ToolUseResult {
  return { id, text: JSON.stringify({ error, message }), isError: true };
}

function textOf({ result }: Extract<ProposalOutcome, { kind: 'executed' }>): string {
  return result.contentKind === 'none'
    ? JSON.stringify(observationOf(result))
    : (result.content ?? '');
}
