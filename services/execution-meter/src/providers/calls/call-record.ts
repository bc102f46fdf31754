import { InvalidRequestError } from '@writ/kernel';
import { addUsage, NO_USAGE, type Spending } from '../../domain/ledger/spending.ts';
import type { EventScope } from '../../events.ts';
import type { StoredCall } from '../../store/calls.ts';
import type { StoredTab } from '../../store/tabs.ts';
import type { CallAsk } from './call-ask.ts';

/**
 * Refuses another request under the id of a call.
 * @throws InvalidRequestError CALL_ID_REUSED
 */
export function refuseReuse(
  { requestDigest }: { readonly requestDigest: string },
  ask: CallAsk,
): void {
  if (requestDigest === ask.requestDigest) return;
  throw new InvalidRequestError(
    'CALL_ID_REUSED',
    `call_id ${ask.callId} was used before, for another request.`,
    { field: 'call_id', call_id: ask.callId },
  );
}

/** What the events of a call's present attempt belong to. */
export function scopeOf(tab: StoredTab, call: StoredCall): EventScope {
  const { callId, step, model, attempts, traceparent } = call;
  return { tab, callId, step, model, attempt: attempts, traceparent };
}

/** A call with one more attempt on its sums. */
export function withSpending(call: StoredCall, spent: Spending): StoredCall {
  return {
    ...call,
    usage: addUsage(call.usage, spent.usage),
    cost: call.cost + spent.cost,
    estimated: call.estimated || spent.estimated,
  };
}

/** A call that no attempt was made of. */
export function newCall(ask: CallAsk, at: Date): StoredCall {
  return {
    callId: ask.callId,
    requestDigest: ask.requestDigest,
    model: ask.model,
    step: ask.step,
    state: 'interrupted',
    attempts: 0,
    owner: '',
    usage: NO_USAGE,
    cost: 0n,
    estimated: false,
    answer: undefined,
    purged: false,
    failure: undefined,
    warnings: [],
    fittedOutput: 0n,
    traceparent: ask.traceparent,
    startedAt: at,
  };
}
