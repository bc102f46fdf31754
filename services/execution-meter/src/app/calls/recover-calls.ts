import type { MeterContext } from '../../context.ts';
import { book } from '../../store/book.ts';
import { findCall, runningCalls } from '../../store/calls.ts';
import { type HoldingEntry, holdingEntries } from '../../store/entries.ts';
import { requireTab } from '../../store/require-spendable.ts';
import { bookingTransaction } from '../tabs/booking-transaction.ts';
import type { CallLedger } from './call-ledger.ts';
import type { ModelCalls } from './model-calls.ts';

const BATCH = 200;

/**
 * Settles the calls of a previous process that used this database, before the meter serves requests (EM-3, EM-7). Sent
 * attempts are settled with their full hold as an estimate, so that the tab includes their possible cost. Returns the
 * number of settled or released attempts; 0 on PostgreSQL, where {@link settleCallsOfDeadReplicas} is used instead.
 */
export async function settleOrphanedCalls(
  context: MeterContext,
  ledger: CallLedger,
): Promise<number> {
  if (context.store.dialect !== 'sqlite') return 0;
  let settled = 0;
  for (;;) {
    const orphans = await holdingEntries(context.store.db, { kind: 'call', limit: BATCH });
    for (const entry of orphans) await expire(context, ledger, entry);
    settled += orphans.length;
    if (orphans.length < BATCH) return settled;
  }
}

/**
 * Processes up to 200 expired reservations and attempts, except those of calls in flight in this process (EM-3):
 * releases model calls that were not sent, and settles the others with their full hold. Returns their number.
 */
export async function expireReservations(
  context: MeterContext,
  ledger: CallLedger,
  calls: ModelCalls,
): Promise<number> {
  const expiredBefore = context.clock.now();
  const expired = await holdingEntries(context.store.db, { expiredBefore, limit: BATCH });
  const orphans = expired.filter((entry) => !calls.has({ ...entry, callId: entry.id.callId }));
  for (const entry of orphans) await expire(context, ledger, entry);
  return orphans.length;
}

/**
 * Settles the calls of dead replicas, and the calls of this replica whose outcome could not be committed (EM-3, EM-7).
 * Returns the number of calls; 0 if replicas do not share the store.
 */
export async function settleCallsOfDeadReplicas(
  context: MeterContext,
  ledger: CallLedger,
  calls: ModelCalls,
): Promise<number> {
  const { db, replicas } = context.store;
  if (!replicas.shared) return 0;
  const running = (await runningCalls(db)).filter((call) => !calls.has(call));
  if (running.length === 0) return 0;
  const dead = await replicas.findDead(running.map(({ owner }) => owner));
  const orphans = running.filter(({ owner }) => owner === replicas.id || dead.has(owner));
  for (const { callId, attempt, ...call } of orphans) {
    await expire(context, ledger, { ...call, id: { kind: 'call', callId, attempt } });
  }
  return orphans.length;
}

async function expire(
  context: MeterContext,
  ledger: CallLedger,
  { id, ...key }: HoldingEntry,
): Promise<void> {
  const { clock, catalog, events } = context;
  await bookingTransaction(
    context,
    key,
    async (trx, access) => {
      const at = clock.now();
      const tab = await requireTab(trx, key);
      const call = id.kind === 'call' ? await findCall(trx, key, id.callId) : undefined;
      if (call?.state === 'running' && call.attempts === id.attempt) {
        await ledger.settleOrphan({ trx, access, tab, at }, call);
        return;
      }
      const booked = await book(trx, {
        tab,
        tenantCaps: catalog.tenantCaps(tab.tenant),
        access,
        id,
        events: [{ type: 'expire' }],
        at,
      });
      const scope = { tab, callId: id.callId, step: 0, model: '', attempt: 0, traceparent: '' };
      await events.budgetThresholds({ trx, at }, scope, booked);
      const { exceeded } = booked;
      if (exceeded === undefined) return;
      await events.budgetExhausted({ trx, at }, scope, exceeded, 'settled');
    },
    { background: true },
  );
}
