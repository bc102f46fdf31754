import type { Selectable } from 'kysely';
import { type AgentKey, agentColumns, type RunKey } from './keys.ts';
import type { SignalsTable } from './schema.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** One signal as it came. */
export type SignalRow = Selectable<SignalsTable>;

/** A signal that is new. */
export type NewSignal = Omit<SignalRow, 'position'>;

/** Records a signal. */
export async function insertSignal(trx: WorkerTransaction, signal: NewSignal): Promise<void> {
  await trx.insertInto('signals').values(signal).execute();
}

/** The signal that a request brought before; undefined when it is news. */
export async function findSignal(
  db: WorkerReader,
  key: AgentKey,
  requestId: string,
): Promise<SignalRow | undefined> {
  return await db
    .selectFrom('signals')
    .selectAll()
    .where((eb) => eb.and({ ...agentColumns(key), request_id: requestId }))
    .executeTakeFirst();
}

/** The oldest signals of a name that the agent has not used yet. */
export async function pendingSignals(
  db: WorkerReader,
  key: AgentKey,
  name: string,
): Promise<SignalRow[]> {
  return await db
    .selectFrom('signals')
    .selectAll()
    .where((eb) => eb.and({ ...agentColumns(key), name }))
    .where('consumed_at', 'is', null)
    .orderBy('position')
    .execute();
}

/** Marks a signal as used; a decision with its writ is forgotten. */
export async function consumeSignal(
  trx: WorkerTransaction,
  position: SignalRow['position'],
  at: Date,
): Promise<void> {
  await trx
    .updateTable('signals')
    .set({ consumed_at: at, decision: null })
    .where('position', '=', position)
    .execute();
}

/** Deletes the signals of a run (SUP-4). */
export async function deleteSignals(trx: WorkerTransaction, run: RunKey): Promise<void> {
  await trx
    .deleteFrom('signals')
    .where('tenant', '=', run.tenant)
    .where('run_id', '=', run.runId)
    .execute();
}
