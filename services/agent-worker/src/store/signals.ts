import type { AgentKey } from '@writ/kernel';
import type { Selectable } from 'kysely';
import { agentColumns } from './keys.ts';
import type { SignalsTable } from './schema.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** A row of `signals`. */
export type SignalRow = Selectable<SignalsTable>;

/** A signal to insert. */
export type NewSignal = Omit<SignalRow, 'position'>;

/** Records a signal. */
export async function insertSignal(trx: WorkerTransaction, signal: NewSignal): Promise<void> {
  await trx.insertInto('signals').values(signal).execute();
}

/** Returns the signal that an earlier attempt with this request id recorded, if any. */
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

/**
 * Returns the unconsumed signals with the given name, oldest first.
 * @param most maximum number; default: all
 */
export async function pendingSignals(
  db: WorkerReader,
  key: AgentKey,
  name: string,
  most?: number,
): Promise<SignalRow[]> {
  const query = db
    .selectFrom('signals')
    .selectAll()
    .where((eb) => eb.and({ ...agentColumns(key), name }))
    .where('consumed_at', 'is', null)
    .orderBy('position');
  return await (most === undefined ? query : query.limit(most)).execute();
}

/** Marks a signal as consumed and deletes its decision with the writ. */
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

/** Deletes the oldest unconsumed signals with the given name, so that at most `most` remain. */
export async function deleteOldest(
  trx: WorkerTransaction,
  key: AgentKey,
  name: string,
  most: number,
): Promise<void> {
  const surplus = await trx
    .selectFrom('signals')
    .select('position')
    .where((eb) => eb.and({ ...agentColumns(key), name }))
    .where('consumed_at', 'is', null)
    .orderBy('position', 'desc')
    .limit(1)
    .offset(most)
    .executeTakeFirst();
  if (surplus === undefined) return;
  await trx
    .deleteFrom('signals')
    .where((eb) => eb.and({ ...agentColumns(key), name }))
    .where('consumed_at', 'is', null)
    .where('position', '<=', surplus.position)
    .execute();
}
