import { isPurged } from '@writ/freeze';
import { type Clock, type RunKey, ToolFailure } from '@writ/kernel';
import type { Notes } from '../domain/notes.ts';
import type { GatewayStore, GatewayTransaction } from './gateway-store.ts';

/** Limits of one run. */
const MAX_NOTES = 64;
const MAX_BYTES = 262_144;

/** Notes of runs in the gateway's store. */
export function createNotes(store: GatewayStore, clock: Clock): Notes {
  return {
    list: async ({ tenant, runId }) => {
      const rows = await store.db
        .selectFrom('notes')
        .select(['name', 'size_bytes'])
        .where('tenant', '=', tenant)
        .where('run_id', '=', runId)
        .orderBy('name')
        .execute();
      return rows.map(({ name, size_bytes }) => ({ name, sizeBytes: size_bytes }));
    },
    read: async ({ tenant, runId }, name) => {
      const row = await store.db
        .selectFrom('notes')
        .select('text')
        .where('tenant', '=', tenant)
        .where('run_id', '=', runId)
        .where('name', '=', name)
        .executeTakeFirst();
      return row?.text;
    },
    write: (run, name, text) =>
      store.transaction((trx) => write(trx, run, { name, text }, clock.now()), { run }),
  };
}

/** Deletes the notes of a run (SUP-4). */
export async function purgeNotes(
  trx: GatewayTransaction,
  { tenant, runId }: RunKey,
): Promise<void> {
  await trx.deleteFrom('notes').where('tenant', '=', tenant).where('run_id', '=', runId).execute();
}

async function write(
  trx: GatewayTransaction,
  { tenant, runId }: RunKey,
  { name, text }: { readonly name: string; readonly text: string },
  at: Date,
): Promise<void> {
  // A call may end shortly after its run; it must not restore purged notes.
  if (await isPurged(trx, { tenant, runId, instance: '' })) {
    throw new ToolFailure('The run has ended and keeps no notes.');
  }
  const others = await trx
    .selectFrom('notes')
    .select('size_bytes')
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('name', '!=', name)
    .execute();
  const size = Buffer.byteLength(text);
  const total = others.reduce((sum, row) => sum + row.size_bytes, size);
  if (others.length >= MAX_NOTES) throw new ToolFailure(`A run keeps at most ${MAX_NOTES} notes.`);
  if (total > MAX_BYTES) {
    throw new ToolFailure(
      `The notes of a run hold at most ${MAX_BYTES} bytes; this makes ${total}.`,
    );
  }
  const row = { text, size_bytes: size, written_at: at };
  await trx
    .insertInto('notes')
    .values({ tenant, run_id: runId, name, ...row })
    .onConflict((conflict) => conflict.columns(['tenant', 'run_id', 'name']).doUpdateSet(row))
    .execute();
}
