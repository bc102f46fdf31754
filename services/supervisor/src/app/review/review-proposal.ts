import { InvalidRequestError } from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
import { pinned, type SupervisorContext } from '../../context.ts';
import { type ActiveClock, activeMsAt, seen } from '../../domain/clock/active-clock.ts';
import { budgetFromJson } from '../../domain/manifest/manifest-json.ts';
import { limitReached } from '../../domain/review/check-limits.ts';
import { type Judgement, judge, judgeInvalid, judgeLate } from '../../domain/review/judge.ts';
import {
  type Proposal,
  proposalDigest,
  rawText,
  readProposal,
} from '../../domain/review/proposal.ts';
import { clockChanges, clockOf, saveAgent } from '../../store/agent/agents.ts';
import { deadlineOf } from '../../store/agent/deadline.ts';
import { type DecisionRow, findDecision, hasComposed } from '../../store/review/decisions.ts';
import { loadFacts } from '../../store/review/facts.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import type { DecisionMessage } from '../../wire/decision.ts';
import { admitAgent } from '../agent/admit-agent.ts';
import { assertHoldsSlot } from './assert-slot.ts';
import { standingDecision } from './current-decision.ts';
import type { FoundTool } from './find-tool.ts';
import { recordDecision } from './record-decision.ts';
import { type Acting, actingOf, assertActs, situationOf } from './review-subject.ts';

/** One request for a review; what could be looked up before the transaction is. */
export interface ReviewRequest {
  readonly call: CallContext;
  readonly proposal: Proposal;
  readonly findTool: FoundTool;
  /** Records what the worker carried. */
  readonly recordCarried: (trx: SupervisorTransaction, at: Date) => Promise<void>;
  /** `performance.now()` when the request came. */
  readonly startedAt: number;
}

/**
 * Reviews one proposal, in the one transaction that locks the facts of its run (SV-1, SV-3). In this
 * order: the lease's epoch, whether run and agent may act, whether the call was decided before, receipts,
 * time, steps, the action's shape, its arguments, the rules.
 * @throws PreconditionError STALE_EPOCH, RUN_ENDED, HALTED, AGENT_PAUSED; InvalidRequestError CALL_ID_REUSED;
 *   UnavailableError TOOL_LIST_UNAVAILABLE; what recording receipts throws
 */
export async function reviewProposal(
  trx: SupervisorTransaction,
  current: SupervisorContext,
  request: ReviewRequest,
): Promise<DecisionMessage> {
  const context = pinned(current);
  const at = context.clock.now();
  const { proposal } = request;
  const admitted = await actingOf(trx, await admitAgent(trx, request.call));
  const before = await findDecision(trx, { ...admitted.key, callId: proposal.callId });
  // The answer to the final that ended the agent may have been lost; it gives nothing to anybody.
  if (before?.run_ended !== true) await assertActs(trx, admitted);
  // A paused agent's partial result still gets out (SB-4).
  const acting = proposal.partial
    ? admitted
    : await assertHoldsSlot(trx, admitted, request.call, at);
  if (before !== undefined) return await repeated(trx, context, acting, before, proposal);
  await request.recordCarried(trx, at);
  const countsNoStep = proposal.composed && !(await hasComposed(trx, acting.key));
  const clock = clockAt(acting, at);
  const activeMs = activeMsAt(clock, at);
  const late = limitReached({
    now: at,
    deadlineAt: deadlineOf(acting.run, acting.agent),
    activeMs,
    maxActiveMs: budgetFromJson(acting.agent.execution_budget).maxActiveMs,
    steps: acting.agent.steps,
    maxSteps: acting.manifest.limits.maxSteps,
    countsNoStep,
  });
  const step = countsNoStep ? 0 : acting.agent.steps + 1;
  await saveAgent(trx, acting.key, {
    ...clockChanges(clock, acting.agent),
    ...(late === undefined && !countsNoStep && { steps: step }),
  });
  const facts = await loadFacts(trx, acting.key, context.policy);
  const shared = { proposal, step, facts, startedAt: request.startedAt };
  if (late !== undefined) {
    const ruled = { ...shared, judgement: judgeLate(late), tool: undefined, rawText: undefined };
    return await recordDecision(trx, context, acting, ruled, at);
  }
  const tool = request.findTool();
  const parsed = readProposal(proposal, tool, targetsOf(acting));
  const judgement: Judgement = parsed.ok
    ? judge(context.policy, parsed.action, tool, situationOf(acting, facts, activeMs))
    : judgeInvalid(parsed.stopReason);
  const ruled = { ...shared, judgement, tool, rawText: rawText(proposal, parsed) };
  return await recordDecision(trx, context, acting, ruled, at);
}

/** Whoever proposes is active, but for a paused agent that hands in what it has (EM-1). */
function clockAt({ agent }: Acting, at: Date): ActiveClock {
  return agent.paused_since === null ? seen(clockOf(agent), at) : clockOf(agent);
}

/** The agents that work may be handed to: those that its manifest names (SUP-9). */
function targetsOf({ manifest }: Acting): string[] {
  return manifest.subAgents.map(({ name }) => name);
}

/** The same proposal gets the recorded decision; another one under the same id is a mistake. */
async function repeated(
  trx: SupervisorTransaction,
  context: SupervisorContext,
  acting: Acting,
  before: DecisionRow,
  proposal: Proposal,
): Promise<DecisionMessage> {
  if (before.proposal_digest === proposalDigest(proposal)) {
    return await standingDecision(trx, context, acting, before);
  }
  throw new InvalidRequestError(
    'CALL_ID_REUSED',
    `call_id ${proposal.callId} was used for another proposal; a call_id names one proposal.`,
    { field: 'call_id', call_id: proposal.callId },
  );
}
