import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidRequestError } from '@writ/kernel';
import type { GatewayContext } from '../../context.ts';
import {
  type FreezeOrder,
  type FreezeScope,
  frozenError,
  purges,
  scopeKey,
} from '../../domain/freeze.ts';
import type { CallKey } from '../../domain/writ.ts';
import { inFlightCallRows, keyOf, purgeResults } from '../../store/calls.ts';
import { findFreeze, insertFreeze } from '../../store/freezes.ts';
import type { GatewayStore, GatewayTransaction } from '../../store/gateway-store.ts';
import { purgeNotes } from '../../store/notes.ts';
import { FREEZES } from './freeze-watch.ts';

/** A call of a frozen scope that has not ended. */
export interface FrozenCall {
  readonly key: CallKey;
  readonly tool: string;
  readonly startedAt: Date;
}

/** How often the calls of other replicas are read while a freeze waits for them. */
const POLL_INTERVAL_MS = 25;

/**
 * Rejects new calls of a scope, cancels the calls in flight and waits up to `waitMs` for them to end
 * (SV-9, SUP-8). A repeated order records nothing, and waits and lists again.
 * @returns the calls that are still in flight; empty for an order that was lifted
 * @throws InvalidRequestError REQUEST_ID_REUSED
 */
export async function freezeScope(
  context: GatewayContext,
  order: FreezeOrder,
  waitMs: number,
): Promise<readonly FrozenCall[]> {
  const { store, clock, inFlightCalls, telemetry, flushSoon } = context;
  const { scope } = order;
  const inForce = await store.transaction((trx) => recordOrder(trx, order, clock.now()));
  telemetry.log.info(
    { order_id: order.orderId, scope: scopeKey(scope), cause: order.cause, in_force: inForce },
    'freeze ordered',
  );
  flushSoon();
  if (!inForce) return [];
  inFlightCalls.cancel(scope, frozenError(order));
  store.replicas.hint(FREEZES);
  const [own, others] = await Promise.all([
    inFlightCalls.settle(scope, waitMs),
    settleAtPeers(store, scope, waitMs),
  ]);
  // A call that has not started by now is rejected by the freeze before it starts.
  const started = own.flatMap(({ key, tool, startedAt }) =>
    startedAt === undefined ? [] : [{ key, tool, startedAt }],
  );
  return [...started, ...others];
}

/** Records an order and purges what it says is not kept. @returns whether the order is in force */
async function recordOrder(
  trx: GatewayTransaction,
  order: FreezeOrder,
  at: Date,
): Promise<boolean> {
  if (!(await insertFreeze(trx, order, at))) {
    const known = await findFreeze(trx, order.orderId);
    if (known !== undefined && known.scope !== scopeKey(order.scope)) throw reused();
    if (known?.lifted !== false) return false;
  }
  const { tenant, runId, agentInstance } = order.scope;
  if (purges(order) && tenant !== undefined && runId !== undefined) {
    await purgeResults(trx, { tenant, runId, ...(agentInstance && { agentInstance }) });
    // Notes belong to the run; its other agents may still read them.
    if (agentInstance === undefined) await purgeNotes(trx, { tenant, runId });
  }
  return true;
}

/** Waits up to `waitMs` until the other replicas have no call of the scope in flight; lists the rest. */
async function settleAtPeers(
  store: GatewayStore,
  scope: FreezeScope,
  waitMs: number,
): Promise<readonly FrozenCall[]> {
  if (!store.replicas.shared) return [];
  const until = performance.now() + waitMs;
  for (;;) {
    const rows = await inFlightCallRows(store.db, scope);
    const calls = rows.filter(({ owner }) => owner !== store.replicas.id);
    const left = until - performance.now();
    if (calls.length === 0 || left <= 0) {
      return calls.map((call) => ({
        key: keyOf(call),
        tool: call.tool,
        startedAt: call.started_at,
      }));
    }
    await sleep(Math.min(POLL_INTERVAL_MS, left));
  }
}

function reused(): InvalidRequestError {
  return new InvalidRequestError(
    'REQUEST_ID_REUSED',
    'order.order_id was used before for another scope.',
    { field: 'order.order_id' },
  );
}
