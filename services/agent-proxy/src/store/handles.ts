import type { AgentKey } from '@writ/kernel';
import type { Insertable, Selectable } from 'kysely';
import type { ProxyReader, ProxyTransaction } from './proxy-store.ts';
import type { HandlesTable } from './schema.ts';

/** A row of `handles`. */
export type HandleRow = Selectable<HandlesTable>;

/** Inserts a handle. */
export async function insertHandle(
  trx: ProxyTransaction,
  handle: Insertable<HandlesTable>,
): Promise<void> {
  await trx.insertInto('handles').values(handle).execute();
}

/** Returns a handle of the agent; undefined for an unknown handle and for a handle of another agent (SYS-6). */
export async function findHandle(
  db: ProxyReader,
  { tenant, runId: run_id, instance }: AgentKey,
  handle: string,
): Promise<HandleRow | undefined> {
  return await db
    .selectFrom('handles')
    .selectAll()
    .where((eb) => eb.and({ handle, tenant, run_id, instance }))
    .executeTakeFirst();
}

/** Deletes a handle after its use. */
export async function deleteHandle(trx: ProxyTransaction, handle: string): Promise<void> {
  await trx.deleteFrom('handles').where('handle', '=', handle).execute();
}
