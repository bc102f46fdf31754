import { InvalidRequestError, UnavailableError } from '@writ/kernel';
import type { CallContext } from '@writ/rpc';
import type { Tx } from '../../context.ts';
import { type ActiveClock, activeMsAt, seen } from '../../domain/clock/active-clock.ts';
import { budgetFromJson } from '../../domain/manifest/manifest-json.ts';
import { limitReached } from '../../domain/review/check-limits.ts';
import {
  type Judgement,
  judge,
  judgeAllowed,
  judgeInvalid,
  judgeLate,
} from '../../domain/review/judge.ts';
import {
  namedTool,
  type Proposal,
  type Proposer,
  proposalDigest,
  rawText,
  readProposal,
} from '../../domain/review/proposal.ts';
import type { ReviewedTool } from '../../domain/review/reviewed-tool.ts';
import type { ToolGatewayPeer } from '../../peers/tool-gateway.ts';
import { clockChanges, clockOf, findAgent, saveAgent } from '../../store/agent/agents.ts';
import { deadlineOf } from '../../store/agent/deadline.ts';
import { noteActivity } from '../../store/agent/waits.ts';
import { haltCovering } from '../../store/halt/halts.ts';
import { type DecisionRow, findDecision, hasComposed } from '../../store/review/decisions.ts';
import { loadFacts } from '../../store/review/facts.ts';
import { findRun } from '../../store/run/runs.ts';
import { lookUpEvents } from '../../store/run/timeline.ts';
import type { DecisionMessage } from '../../wire/decision.ts';
import { admitAgent, callingAgent } from '../agent/admit-agent.ts';
import { recordHeldEvents } from '../timeline/carried-events.ts';
import type { RecordCarried } from './carried-receipts.ts';
import { currentDecision } from './current-decision.ts';
import { decisionEventId } from './decision-row.ts';
import { effectsFor } from './effects-for.ts';
import { recordDecision } from './record-decision.ts';
import {
  assertHoldsSlot,
  assertMayAct,
  type ReviewSubject,
  situationOf,
  subjectOf,
} from './review-subject.ts';

/**
 * Returns the definition of the tool in a proposal; undefined if the proposal is not a tool call or the gateway does
 * not have the tool.
 * @throws UnavailableError TOOL_LIST_UNAVAILABLE when the gateway never listed its tools (SYS-4)
 */
export type FindTool = () => ReviewedTool | undefined;

/**
 * Looks up the proposed tool. If the gateway is unavailable, the error is thrown only when the review calls the
 * returned function.
 */
export async function findProposedTool(
  gateway: ToolGatewayPeer,
  proposal: Proposal,
): Promise<FindTool> {
  const name = namedTool(proposal);
  if (name === undefined) return () => undefined;
  try {
    const tool = await gateway.tool(name);
    return () => tool;
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    return () => {
      throw error;
    };
  }
}

/** One request for a review, with everything that is read before the transaction. */
export interface ReviewRequest {
  readonly call: CallContext;
  readonly proposal: Proposal;
  readonly findTool: FindTool;
  readonly recordCarried: RecordCarried;
  /** `performance.now()` at the arrival of the request. */
  readonly startedAt: number;
}

/**
 * Reviews one proposal in the transaction that locks the facts of its run (SV-1, SV-3). It checks, in this order: the
 * lease epoch, whether run and agent may act, the slot, receipts, whether the call_id was decided before, time, steps,
 * the shape of the action, its arguments, the policy.
 * @throws PreconditionError STALE_EPOCH, RUN_ENDED, HALTED, AGENT_PAUSED; NotFoundError AGENT_NOT_FOUND;
 *   InvalidRequestError CALL_ID_REUSED; UnavailableError TOOL_LIST_UNAVAILABLE; the errors of `recordCarried`
 */
export async function reviewProposal(tx: Tx, request: ReviewRequest): Promise<DecisionMessage> {
  const { trx, at, context } = tx;
  const { proposal } = request;
  const before = await readRows(tx, request);
  const admitted = await subjectOf(trx, await admitAgent(trx, request.call));
  // A worker that did not receive the response may repeat the final answer that ended its agent; the response to a
  // final answer contains no writ.
  if (before?.run_ended !== true) await assertMayAct(trx, admitted);
  // A paused agent may still deliver its partial result (SB-4).
  const subject = proposal.partial ? admitted : await assertHoldsSlot(tx, admitted, request.call);
  // Receipts and events are recorded even for a repeated review, because the worker assumes that all receipts and
  // events of a successful request are recorded (HK-1, TG-8). The exception is a repeated final answer that ended its
  // agent.
  if (before?.run_ended !== true) await request.recordCarried(tx);
  if (before !== undefined) return await repeatedReview(tx, subject, before, proposal);
  await recordHeldEvents(tx, subject.key);
  const countsNoStep = proposal.composed && !(await hasComposed(trx, subject.key));
  await noteActivity(trx, subject.agent, at);
  const clock = clockAt(subject, at);
  const activeMs = activeMsAt(clock, at);
  const late = limitReached({
    now: at,
    deadlineAt: deadlineOf(subject.run, subject.agent),
    activeMs,
    maxActiveMs: budgetFromJson(subject.agent.execution_budget).maxActiveMs,
    steps: subject.agent.steps,
    maxSteps: subject.manifest.limits.maxSteps,
    countsNoStep,
  });
  const step = countsNoStep ? 0 : subject.agent.steps + 1;
  await saveAgent(trx, subject.key, {
    ...clockChanges(clock, subject.agent),
    ...(late === undefined && !countsNoStep && { steps: step }),
  });
  const facts = await loadFacts(trx, subject.key, context.policy);
  const shared = { proposal, step, facts, startedAt: request.startedAt };
  if (late !== undefined) {
    const input = { ...shared, judgement: judgeLate(late), tool: undefined, rawText: undefined };
    return await recordDecision(tx, subject, input);
  }
  const tool = request.findTool();
  const parsed = readProposal(proposal, tool, proposerOf(subject));
  const judgement: Judgement = parsed.ok
    ? judgeAllowed(
        judge(context.policy, parsed.action, tool, {
          ...situationOf(subject, facts, activeMs),
          effects: await effectsFor(tx, subject),
        }),
        tool,
        callerOf(subject),
      )
    : judgeInvalid(parsed.stopReason);
  const input = { ...shared, judgement, tool, rawText: rawText(proposal, parsed) };
  return await recordDecision(tx, subject, input);
}

/**
 * Reads the rows that every review needs, on PostgreSQL in one round trip, and caches them for the transaction. Returns
 * the recorded decision on the call, if any.
 */
async function readRows(
  { trx, context }: Tx,
  { call, proposal: { callId } }: ReviewRequest,
): Promise<DecisionRow | undefined> {
  const key = callingAgent(call);
  const [before] = await Promise.all([
    findDecision(trx, { ...key, callId }),
    findAgent(trx, key),
    findRun(trx, key),
    haltCovering(trx, key),
    loadFacts(trx, key, context.policy),
    lookUpEvents(trx, key, [decisionEventId(key, callId, 'decided')]),
  ]);
  return before;
}

/**
 * Returns the clock of an agent after a proposal. A proposal starts the clock, except the partial result of a paused
 * agent (EM-1).
 */
function clockAt({ agent }: ReviewSubject, at: Date): ActiveClock {
  return agent.paused_since === null ? seen(clockOf(agent), at) : clockOf(agent);
}

/** Returns the caller that the allowlists of the manifest and of the gateway are checked for (TG-2). */
function callerOf({ run, agent, ref }: ReviewSubject) {
  return { agentName: ref.name, tenant: run.tenant, tools: JSON.parse(agent.tools) as string[] };
}

/** The kind of the agent, and the agents that its manifest allows as targets of a delegation (SUP-9). */
function proposerOf({ manifest: { kind, subAgents } }: ReviewSubject): Proposer {
  return { kind, targets: subAgents.map(({ name }) => name) };
}

/** Returns the recorded decision if the repeated proposal is unchanged; otherwise throws CALL_ID_REUSED. */
async function repeatedReview(
  tx: Tx,
  subject: ReviewSubject,
  before: DecisionRow,
  proposal: Proposal,
): Promise<DecisionMessage> {
  if (before.proposal_digest === proposalDigest(proposal)) {
    return await currentDecision(tx, subject, before);
  }
  throw new InvalidRequestError(
    'CALL_ID_REUSED',
    `call_id ${proposal.callId} was already used for a different proposal; use a new call_id.`,
    { field: 'call_id', call_id: proposal.callId },
  );
}
