import { canonicalDigest, InternalError, type Phase } from '@writ/kernel';
import {
  type Action,
  type Decision,
  phaseOfRefusal,
  refusalOf,
  withoutWrit,
} from '../domain/calls/decision.ts';
import { observationOf, type ToolOutcome } from '../domain/calls/tool-call.ts';
import type { Operation } from '../domain/journal/entry.ts';
import type { Proposal, ProposalOutcome } from './agent.ts';
import type { NumberedCall } from './journal.ts';
import type { RunScope } from './scope.ts';
import { awaitSignal } from './signals.ts';
import { PeerRefusal, Stopped } from './unwinding.ts';

type ToolCall = Extract<Action, { kind: 'tool' }>;

/** The effects of a proposal, as parts of one operation. */
const PART = { review: 0, approval: 1, execution: 2 } as const;

/** The signal that brings the answer of a person. */
function approvalSignal(callId: string): string {
  return `approval:${callId}`;
}

/**
 * Review, wait and execution of one proposal (SV-1, RT-1), under one call_id. Each is an entry of its
 * own, so that an agent that runs again goes on after the last one that is recorded.
 */
export async function propose(scope: RunScope, proposal: Proposal): Promise<ProposalOutcome> {
  const call = scope.journal.next();
  const { callId } = call;
  const reviewed = await review(scope, call, proposal);
  const decision = reviewed.settled ? reviewed : await approval(scope, call);
  scope.steps.note(refusalOf(decision) ?? decision.verdict);
  const refused = refusalOf(decision);
  if (refused !== undefined) {
    const stop = { stopReason: refused, phase: phaseOfRefusal(decision), callId };
    return { kind: 'refused', callId, decision, stop };
  }
  const action = decision.executedAction;
  if (action?.kind !== 'tool') return { kind: 'finished', callId, decision };
  const result = await execute(scope, call, decision, action);
  if (result.status === 'ok') {
    return { kind: 'executed', callId, decision, result, observation: observationOf(result) };
  }
  scope.steps.note(result.stopReason);
  const stop = {
    stopReason: result.stopReason,
    phase: 'execution',
    callId,
    detail: result.message,
  } as const;
  return { kind: 'failed', callId, decision, result, stop };
}

async function review(
  { session, journal, commits, calls, carried, peers }: RunScope,
  { position, callId }: NumberedCall,
  proposal: Proposal,
): Promise<Decision> {
  const operation: Operation = {
    position,
    part: PART.review,
    kind: 'review',
    argsDigest: canonicalDigest(proposal),
  };
  const recorded = journal.recall(operation);
  if (recorded !== undefined) {
    carried.deliveredBefore();
    return recorded.value as Decision;
  }
  session.check();
  await commits.beforeEffect();
  const shown = carried.peek();
  const decision = await orStop('supervisor', callId, () =>
    calls.call({ audience: 'supervisor' }, (options) =>
      peers.supervisor.reviewAction({ callId, ...proposal, ...shown }, options),
    ),
  );
  carried.delivered(shown);
  journal.record({ ...operation, value: decision }, false);
  return decision;
}

async function approval(scope: RunScope, { position, callId }: NumberedCall): Promise<Decision> {
  const place = { position, part: PART.approval };
  const { decision } = await awaitSignal(scope, approvalSignal(callId), place);
  if (decision !== null) return JSON.parse(decision) as Decision;
  throw new InternalError(
    'SIGNAL_WITHOUT_DECISION',
    `The signal that answers ${callId} brought no decision.`,
    { call_id: callId },
  );
}

async function execute(
  scope: RunScope,
  { position, callId }: NumberedCall,
  decision: Decision,
  action: ToolCall,
): Promise<ToolOutcome> {
  const { session, journal, commits, steps, calls, carried, peers } = scope;
  const operation: Operation = {
    position,
    part: PART.execution,
    kind: 'tool',
    argsDigest: canonicalDigest(action),
  };
  const recorded = journal.recall(operation);
  if (recorded !== undefined) {
    carried.add(callId, recorded.value as ToolOutcome);
    return recorded.value as ToolOutcome;
  }
  session.check();
  await commits.beforeEffect();
  const order = await presentableWrit(scope, decision, callId);
  session.note({ type: 'tool_called' });
  const outcome = await orStop('execution', callId, () =>
    calls.call({ renewWrit: () => order.renew() }, (options) =>
      peers.toolGateway.callTool(
        { callId, action, writ: order.writ, step: steps.current, agent: session.lease },
        options,
      ),
    ),
  );
  session.note({ type: 'tool_answered' });
  carried.add(callId, outcome);
  journal.record({ ...operation, value: outcome }, false);
  // The writ is large and secret, and nobody needs it any more.
  journal.amend({ position, part: PART.review }, withoutWrit(decision));
  return outcome;
}

/** The writ of a decision, or a fresh one when it has expired (TG-1). */
async function presentableWrit(scope: RunScope, decision: Decision, callId: string) {
  const now = scope.session.meta.clock.now().getTime();
  const order = {
    writ: decision.writ ?? '',
    async renew() {
      const fresh = await orStop('execution', callId, () => currentDecision(scope, callId));
      // Without a fresh one the call was executed: the gateway answers the old one with its record.
      order.writ = fresh.writ ?? order.writ;
    },
  };
  if (order.writ === '' || (decision.writExpiresAt ?? 0) <= now) await order.renew();
  if (order.writ !== '') return order;
  throw new Stopped({
    stopReason: 'error:no_writ',
    phase: 'execution',
    callId,
    detail: 'The approved action came without a writ.',
  });
}

function currentDecision({ calls, peers }: RunScope, callId: string): Promise<Decision> {
  return calls.call({ audience: 'supervisor' }, (options) =>
    peers.supervisor.getDecision(callId, options),
  );
}

async function orStop<T>(phase: Phase, callId: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof PeerRefusal)) throw error;
    const { stopReason, message } = error;
    throw new Stopped({ stopReason, phase, callId, detail: message });
  }
}
