import type { WorkerTransaction } from './worker-store.ts';

/** Those of these events that are in the outbox. */
export async function storedEvents(
  trx: WorkerTransaction,
  eventIds: readonly string[],
): Promise<ReadonlySet<string>> {
  if (eventIds.length === 0) return new Set();
  const rows = await trx
    .selectFrom('outbox')
    .select('event_id')
    .where('event_id', 'in', eventIds)
    .execute();
  return new Set(rows.map(({ event_id: id }) => id));
}
