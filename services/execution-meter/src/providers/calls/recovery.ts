import type { MeterContext } from '../../context.ts';
import { requireTab } from '../../store/admit.ts';
import { book } from '../../store/book.ts';
import { findCall, runningCalls } from '../../store/calls.ts';
import { type HoldingEntry, holdingEntries } from '../../store/entries.ts';
import type { CallBooks } from './call-books.ts';
import type { ModelCalls } from './model-calls.ts';

const BATCH = 200;

/**
 * Ends what a dead process of this database left behind: attempts that were sent are settled in full,
 * estimated, so that money which may be gone stays on the tab (EM-3, EM-7). Run before serving. Where
 * several processes share a database, see {@link settleCallsOfGone}.
 */
export async function settleLeftovers(context: MeterContext, books: CallBooks): Promise<number> {
  if (context.store.dialect !== 'sqlite') return 0;
  let settled = 0;
  for (;;) {
    const left = await holdingEntries(context.store.db, { kind: 'call', limit: BATCH });
    for (const entry of left) await expire(context, books, entry);
    settled += left.length;
    if (left.length < BATCH) return settled;
  }
}

/**
 * Ends reservations that are over their time, but no call that this process is still making (EM-3).
 * Returns how many.
 */
export async function expireReservations(
  context: MeterContext,
  books: CallBooks,
  calls: ModelCalls,
): Promise<number> {
  const expiredBefore = context.clock.now();
  const over = await holdingEntries(context.store.db, { expiredBefore, limit: BATCH });
  const ours = over.filter((entry) => !calls.isMaking({ ...entry, callId: entry.id.callId }));
  for (const entry of ours) await expire(context, books, entry);
  return ours.length;
}

/**
 * Settles the calls that replicas were making when they ended, and those of this one whose end could
 * not be written down (EM-3, EM-7). Returns how many.
 */
export async function settleCallsOfGone(
  context: MeterContext,
  books: CallBooks,
  calls: ModelCalls,
): Promise<number> {
  const { db, replicas } = context.store;
  if (!replicas.shared) return 0;
  const running = (await runningCalls(db)).filter((call) => !calls.isMaking(call));
  if (running.length === 0) return 0;
  const gone = await replicas.findDead(running.map(({ owner }) => owner));
  const left = running.filter(({ owner }) => owner === replicas.id || gone.has(owner));
  for (const { callId, attempt, ...call } of left) {
    await expire(context, books, { ...call, id: { kind: 'call', callId, attempt } });
  }
  return left.length;
}

async function expire(
  { store, clock, catalog, events }: MeterContext,
  books: CallBooks,
  { id, ...key }: HoldingEntry,
): Promise<void> {
  await store.transaction(
    async (trx) => {
      const at = clock.now();
      const tab = await requireTab(trx, key);
      const call = id.kind === 'call' ? await findCall(trx, key, id.callId) : undefined;
      if (call?.state === 'running' && call.attempts === id.attempt) {
        await books.abandon(trx, tab, call, at);
        return;
      }
      const { exceeded } = await book(trx, {
        tab,
        tenantCaps: catalog.tenantCaps(tab.tenant),
        id,
        events: [{ type: 'expire' }],
        at,
      });
      if (exceeded === undefined) return;
      const scope = { tab, callId: id.callId, step: 0, model: '', attempt: 0, traceparent: '' };
      await events.budgetExhausted(trx, scope, exceeded, at, 'settled');
    },
    { background: true },
  );
}
