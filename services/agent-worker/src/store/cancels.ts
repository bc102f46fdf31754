import type { AgentKey, RunKey } from '@writ/kernel';
import { prepareQuery } from '@writ/store';
import type { Selectable } from 'kysely';
import { runColumns } from './keys.ts';
import type { CancelsTable } from './schema.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** A row of `cancels`. */
export type CancelRow = Selectable<CancelsTable>;

/** Records a cancellation. */
export async function insertCancel(trx: WorkerTransaction, cancel: CancelRow): Promise<void> {
  await trx.insertInto('cancels').values(cancel).execute();
}

/** Returns the cancellation that an earlier attempt with this request id recorded, if any. */
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

/** Returns the cancellation that ended an agent or its whole run, if any. */
export async function cancelOf(db: WorkerReader, key: AgentKey): Promise<CancelRow | undefined> {
  const { rows } = await selectCancels(db, key);
  return rows[0];
}

const selectCancels = prepareQuery((db: WorkerReader, key: AgentKey) =>
  db
    .selectFrom('cancels')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('instance', 'in', ['', key.instance])
    .orderBy('cancelled_at'),
);
