import { setTimeout as sleep } from 'node:timers/promises';
import { durationMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { FreezeOrder as FreezeOrderMessage } from '@writ/contracts/writ/control/v1/freeze_pb';
import { type Clock, covers, InvalidRequestError, type Scope, scopeKey } from '@writ/kernel';
import type { SharedStore } from '@writ/store';
import type { Logger } from '@writ/telemetry';
import type { Transaction } from 'kysely';
import { type FreezeOrder, frozenError } from './order.ts';
import { readFreezeOrder } from './read-order.ts';
import { type FreezesDatabase, insertFreeze, liftFreeze } from './store.ts';
import { FREEZES_TOPIC, type FreezableCalls, type FrozenCall } from './watch.ts';

/** Dependencies of the freeze handlers. */
export interface FreezeParts<DB extends FreezesDatabase> {
  readonly store: SharedStore<DB>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly calls: FreezableCalls;
  /** Reads the calls in flight within a scope with `db`; `owner` is the replica that makes the call. */
  readonly callsInStore: (
    db: SharedStore<DB>['db'],
    scope: Scope,
  ) => Promise<readonly (FrozenCall & { readonly owner: string })[]>;
  /**
   * Runs in the transaction that records an order, even if the order is repeated; purges recorded payloads (SUP-4).
   */
  readonly onRecord: (trx: Transaction<DB>, order: FreezeOrder, inForce: boolean) => Promise<void>;
  /** Runs after an order is committed. */
  readonly onCommit?: () => void;
}

const DEFAULT_WAIT_MS = 1_000;
/** Interval of reads of the calls of other replicas during the wait, in milliseconds. */
const POLL_MS = 25;

/** Creates the handlers of the RPCs Freeze and Unfreeze. */
export function createFreezeHandlers<DB extends FreezesDatabase>(parts: FreezeParts<DB>) {
  const { store, clock, log } = parts;
  return {
    /**
     * Rejects new calls of a scope, aborts the calls in flight and waits for them to end (SV-9, SUP-8). Responds with
     * the calls that are still in flight. A repeated order waits again and returns the calls that are then in flight.
     */
    freeze: async ({ order }: { readonly order?: FreezeOrderMessage | undefined }) => {
      const waitMs = order?.wait === undefined ? DEFAULT_WAIT_MS : durationMs(order.wait);
      const calls = await freezeScope(parts, readFreezeOrder(order, clock.now()), waitMs);
      return {
        inFlight: calls.map(({ instance, startedAt, ...call }) => ({
          ...call,
          agentInstance: instance,
          startTime: timestampFromDate(startedAt),
        })),
      };
    },
    /** Lifts one order; other orders for the same scope remain in force (SV-9). */
    unfreeze: async ({ orderId }: { readonly orderId: string }) => {
      const lifted = await store.transaction((trx) => liftFreeze(trx, orderId, clock.now()), {
        urgent: true,
      });
      log.info({ order_id: orderId, lifted }, 'unfreeze completed');
      return { lifted };
    },
  };
}

/**
 * Records an order, aborts the calls in flight and waits up to `waitMs` for them to end.
 * @returns the calls that are still in flight; empty for an order that was lifted
 * @throws InvalidRequestError REQUEST_ID_REUSED
 */
async function freezeScope<DB extends FreezesDatabase>(
  parts: FreezeParts<DB>,
  order: FreezeOrder,
  waitMs: number,
): Promise<readonly FrozenCall[]> {
  const { store, log, calls } = parts;
  const { orderId, scope, cause } = order;
  const inForce = await recordOrder(parts, order);
  log.info(
    { order_id: orderId, scope: scopeKey(scope), cause, in_force: inForce },
    'freeze recorded',
  );
  parts.onCommit?.();
  if (!inForce) return [];
  const error = frozenError(order);
  calls.abort((agent) => (covers(scope, agent) ? error : undefined));
  store.replicas.hint(FREEZES_TOPIC);
  const [, callsOfPeers] = await Promise.all([
    calls.settle(scope, waitMs),
    settleAtPeers(parts, order, waitMs),
  ]);
  return [...calls.list(scope), ...callsOfPeers];
}

function recordOrder<DB extends FreezesDatabase>(
  { store, clock, onRecord }: FreezeParts<DB>,
  order: FreezeOrder,
): Promise<boolean> {
  const work = async (trx: Transaction<DB>): Promise<boolean> => {
    const recorded = await insertFreeze(trx, order, clock.now());
    if (recorded.scope !== scopeKey(order.scope)) {
      throw new InvalidRequestError(
        'REQUEST_ID_REUSED',
        `order.order_id ${order.orderId} was used for a different scope; use a new order_id.`,
        { field: 'order.order_id' },
      );
    }
    await onRecord(trx, order, !recorded.lifted);
    return !recorded.lifted;
  };
  return store.transaction(work, { urgent: true });
}

/** Waits up to `waitMs` for the calls of other replicas within the scope to end; returns those still in flight. */
async function settleAtPeers<DB extends FreezesDatabase>(
  { store, callsInStore }: FreezeParts<DB>,
  { scope, cause }: FreezeOrder,
  waitMs: number,
): Promise<readonly FrozenCall[]> {
  const { replicas } = store;
  if (!replicas.shared) return [];
  const db = cause === 'halt' ? store.urgentDb : store.db;
  const until = performance.now() + waitMs;
  for (;;) {
    const calls = (await callsInStore(db, scope)).filter(({ owner }) => owner !== replicas.id);
    const remaining = until - performance.now();
    if (calls.length === 0 || remaining <= 0) return calls.map(({ owner: _, ...call }) => call);
    await sleep(Math.min(POLL_MS, remaining));
  }
}
