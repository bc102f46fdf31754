import type { WritError } from '@writ/kernel';
import type { ChatAnswer, IssuedIds } from '../../domain/chat/chat.ts';
import type { CallFailure } from '../../domain/chat/failure.ts';
import { callIdReused } from '../../domain/id-reused.ts';
import type { Balance } from '../../domain/ledger/balance.ts';
import type { Hold } from '../../domain/ledger/entry.ts';
import type { Breach } from '../../domain/ledger/exceeded-cap.ts';
import { addUsage, NO_USAGE, type Spending } from '../../domain/ledger/spending.ts';
import type { EventScope } from '../../events.ts';
import type { StoredCall } from '../../store/calls.ts';
import type { StoredTab } from '../../store/tabs.ts';
import type { CallRequest } from './call-request.ts';

/** The result of the lookup before the first transaction of a call. */
export interface CallLookup {
  /**
   * Whether the call is known not to exist, so that the first transaction does not read it. Always false on a database
   * that replicas share, because another replica can create the call; in this process the registry of calls in flight
   * prevents that.
   */
  readonly isNew: boolean;
  /**
   * Replicas known to be dead. This replica takes over a running call of another replica only if that replica is in the
   * set.
   */
  readonly dead: ReadonlySet<string>;
}

/** A reserved attempt that can be sent. */
export interface OpenAttempt {
  readonly tab: StoredTab;
  readonly call: StoredCall;
  readonly attempt: number;
  readonly hold: Hold;
  /** Start of the attempt on the monotonic clock of this process, in milliseconds. */
  readonly startedMs: number;
}

/** Result of opening an attempt. */
export type Opening =
  | { readonly type: 'opened'; readonly open: OpenAttempt }
  /** The call already has an outcome. */
  | { readonly type: 'recorded'; readonly call: StoredCall }
  /** Another replica makes the call. */
  | { readonly type: 'owned_by_peer' }
  /**
   * The upper bound of the prompt tokens does not fit the budget, so the tokens must be counted. Nothing was written.
   */
  | { readonly type: 'uncounted' }
  /** A cap refuses the attempt. */
  | {
      readonly type: 'refused';
      readonly breach: Breach;
      /** Number of output tokens that would fit the budget. */
      readonly fits: bigint;
      readonly ended: EndedCall;
    }
  /** The next attempt is not permitted any more, for example after a freeze. */
  | { readonly type: 'stopped'; readonly error: WritError; readonly ended: EndedCall };

/** State of a call after a commit, with the accounts of its levels. */
export interface EndedCall {
  readonly tab: StoredTab;
  readonly call: StoredCall;
  readonly levels: readonly Balance[];
}

/** Result of an attempt. */
export interface AttemptEnd {
  readonly spent: Spending;
  /** Status of the event: `ok`, `interrupted` or a stop reason. */
  readonly status: string;
  readonly warnings: readonly string[];
}

/** Result of the last attempt of a call; interrupted when there is neither answer nor failure. */
export interface CallConclusion extends AttemptEnd {
  readonly answer?: ChatAnswer;
  /** Ids of the answer, to which later requests of the session can refer. */
  readonly issued?: (IssuedIds & { readonly provider: string }) | undefined;
  readonly failure?: CallFailure;
}

/** Maximum number of events that are kept per call; enough for at least 21 attempts. */
const MAX_EVENTS = 64;

/**
 * Rejects a different request with the id of an existing call.
 * @throws InvalidRequestError CALL_ID_REUSED
 */
export function requireSameRequest(
  { requestDigest }: { readonly requestDigest: string },
  { callId, requestDigest: digest }: CallRequest,
): void {
  if (requestDigest !== digest) throw callIdReused(callId);
}

/** Returns the event scope of the current attempt of a call. */
export function eventScope(tab: StoredTab, call: StoredCall): EventScope {
  const { callId, step, model, attempts, traceparent } = call;
  return { tab, callId, step, model, attempt: attempts, traceparent };
}

/** Returns the call after the usage and the cost of one more attempt were added to its sums. */
export function withSpending(call: StoredCall, spent: Spending): StoredCall {
  return {
    ...call,
    usage: addUsage(call.usage, spent.usage),
    cost: call.cost + spent.cost,
    estimated: call.estimated || spent.estimated,
  };
}

/** Returns a call without attempts. */
export function newCall(request: CallRequest, at: Date): StoredCall {
  return {
    callId: request.callId,
    requestDigest: request.requestDigest,
    model: request.model,
    step: request.step,
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
    events: [],
    fittedOutput: 0n,
    traceparent: request.traceparent,
    startedAt: at,
  };
}

/** Returns a call with one more event; keeps the last {@link MAX_EVENTS} events. */
export function withEvent(call: StoredCall, event: Uint8Array): StoredCall {
  const events = [...call.events, Buffer.from(event).toString('base64')];
  return { ...call, events: events.slice(-MAX_EVENTS) };
}
