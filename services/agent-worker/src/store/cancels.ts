import type { Selectable } from 'kysely';
import { type AgentKey, type RunKey, runColumns } from './keys.ts';
import type { CancelsTable } from './schema.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** One order to end agents. */
export type CancelRow = Selectable<CancelsTable>;

/** Records an order to end agents. */
export async function insertCancel(trx: WorkerTransaction, cancel: CancelRow): Promise<void> {
  await trx.insertInto('cancels').values(cancel).execute();
}

/** The order that a request brought before; undefined when it is news. */
export async function findCancel(
  db: WorkerReader,
  run: RunKey,
  requestId: string,
): Promise<CancelRow | undefined> {
  return await db
    .selectFrom('cancels')
    .selectAll()
    .where((eb) => eb.and({ ...runColumns(run), request_id: requestId }))
    .executeTakeFirst();
}

/** The order that ended an agent, or its whole run; undefined when there is none. */
export async function cancelOf(db: WorkerReader, key: AgentKey): Promise<CancelRow | undefined> {
  return await db
    .selectFrom('cancels')
    .selectAll()
    .where((eb) => eb.and(runColumns(key)))
    .where('instance', 'in', ['', key.instance])
    .orderBy('cancelled_at')
    .executeTakeFirst();
}
