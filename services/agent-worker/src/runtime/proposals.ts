import { canonicalDigest, InternalError } from '@writ/kernel';
import { type Action, type Decision, phaseOfRefusal, refusalOf } from '../domain/calls/decision.ts';
import { observationOf, type ToolOutcome } from '../domain/calls/tool-call.ts';
import type { Operation } from '../domain/journal/entry.ts';
import type { Proposal, ProposalOutcome } from './agent.ts';
import { execute, stopOnRefusal } from './execute-tool.ts';
import type { NumberedCall } from './journal/journal.ts';
import type { RunScope } from './scope.ts';
import { awaitSignal } from './signals.ts';

type ToolCall = Extract<Action, { kind: 'tool' }>;

/** Effect indexes of a proposal. */
const PART = { review: 0, approval: 1, execution: 2, resolution: 3, outcome: 4 } as const;

/**
 * Reviews a proposal, waits for its approval and executes it under one call_id (SV-1, RT-1). Each part has its own
 * journal entry, so that a replay continues after the last recorded part.
 */
export async function propose(scope: RunScope, proposal: Proposal): Promise<ProposalOutcome> {
  const call = scope.cursor.next();
  const { callId } = call;
  const reviewed = await review(scope, call, proposal);
  const decision = reviewed.settled ? reviewed : await awaitDecision(scope, call, PART.approval);
  const refused = refusalOf(decision);
  scope.steps.note(refused ?? decision.verdict);
  if (refused !== undefined) {
    const stop = { stopReason: refused, phase: phaseOfRefusal(decision), callId };
    return { kind: 'refused', callId, decision, stop };
  }
  const action = decision.executedAction;
  if (action?.kind !== 'tool') return { kind: 'finished', callId, decision };
  const result = await executeAndResolve(scope, call, decision, action);
  if (result.status === 'ok') {
    return { kind: 'executed', callId, decision, result, observation: observationOf(result) };
  }
  const { stopReason, message: detail } = result;
  scope.steps.note(stopReason);
  const stop = { stopReason, phase: 'execution', callId, detail } as const;
  return { kind: 'failed', callId, decision, result, stop };
}

/** The journaled response to a review, with the digests of the receipts that the request delivered. */
type Reviewed = Decision & { readonly delivered?: readonly string[] };

async function review(
  { session, journal, commits, calls, carried, peers }: RunScope,
  { branch, position, callId }: NumberedCall,
  proposal: Proposal,
): Promise<Decision> {
  const operation: Operation = {
    branch,
    position,
    part: PART.review,
    kind: 'review',
    argsDigest: canonicalDigest(proposal),
  };
  const recorded = journal.recall(operation);
  if (recorded !== undefined) {
    const { delivered, ...decision } = recorded.value as Reviewed;
    carried.replayed(delivered, branch);
    return decision;
  }
  session.check();
  await commits.beforeEffect();
  const attached = carried.peek();
  const decision = await stopOnRefusal('supervisor', callId, () =>
    calls.call({ audience: 'supervisor', acts: true }, (options) =>
      peers.supervisor.reviewAction({ callId, ...proposal, ...attached }, options),
    ),
  );
  const value: Reviewed = { ...decision, delivered: carried.acknowledge(attached) };
  journal.record({ ...operation, value }, false);
  return decision;
}

/**
 * Suspends the agent until the approval of the call is decided or has expired, and returns the resulting decision
 * (SV-5, TG-5).
 */
export async function awaitDecision(
  scope: RunScope,
  { branch, position, callId }: NumberedCall,
  part: number,
): Promise<Decision> {
  const { decision } = await awaitSignal(scope, `approval:${callId}`, { branch, position, part });
  if (decision !== null) return JSON.parse(decision) as Decision;
  throw new InternalError(
    'SIGNAL_WITHOUT_DECISION',
    `The approval signal for ${callId} has no decision.`,
    { call_id: callId },
  );
}

/**
 * Executes an approved action. An indeterminate outcome is resolved by a human while the agent is
 * suspended; the gateway then returns the resolved outcome (TG-5).
 */
async function executeAndResolve(
  scope: RunScope,
  call: NumberedCall,
  decision: Decision,
  action: ToolCall,
): Promise<ToolOutcome> {
  const result = await execute(scope, { ...call, part: PART.execution }, decision, action);
  if (result.status !== 'unknown') {
    scope.journal.dropWrit({ ...call, part: PART.review });
    return result;
  }
  scope.steps.note(result.stopReason);
  const resolved = await awaitDecision(scope, call, PART.resolution);
  const unresolved = refusalOf(resolved);
  if (unresolved !== undefined) return { ...result, stopReason: unresolved };
  scope.steps.note(decision.verdict);
  return await execute(scope, { ...call, part: PART.outcome }, decision, action);
}
