import type { RunKey } from '@writ/kernel';
import type { WorkerTransaction } from './worker-store.ts';

/** Tables with the content of agents, apart from the payloads that journals share. */
const TABLES = ['journal', 'snapshots', 'snapshot_items', 'signals', 'inbox', 'follows'] as const;

/** Maximum number of agents per statement, because databases limit the number of parameters of a statement. */
const MAX_INSTANCES = 500;

/**
 * Deletes the content of a run: journals with log entries and payloads, snapshots, signals, messages and
 * topic subscriptions (SUP-4).
 * @param instances only the content of these agents; omitted for all
 */
export async function deleteContent(
  trx: WorkerTransaction,
  run: RunKey,
  instances?: readonly string[],
): Promise<void> {
  if (instances === undefined) await deleteRows(trx, run);
  const count = instances?.length ?? 0;
  for (let from = 0; from < count; from += MAX_INSTANCES) {
    await deleteRows(trx, run, instances?.slice(from, from + MAX_INSTANCES));
  }
  if (instances?.length !== 0) await deleteUnusedPayloads(trx, run);
}

async function deleteRows(
  trx: WorkerTransaction,
  { tenant, runId }: RunKey,
  instances?: readonly string[],
): Promise<void> {
  for (const table of TABLES) {
    const ofRun = trx.deleteFrom(table).where('tenant', '=', tenant).where('run_id', '=', runId);
    const query = instances === undefined ? ofRun : ofRun.where('instance', 'in', instances);
    await query.execute();
  }
}

/** Deletes the payloads of a run that no journal refers to any more; agents of the run share equal payloads. */
async function deleteUnusedPayloads(
  trx: WorkerTransaction,
  { tenant, runId }: RunKey,
): Promise<void> {
  await trx
    .deleteFrom('payloads')
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('digest', 'not in', (query) =>
      query
        .selectFrom('journal')
        .select('payload_digest')
        .where('tenant', '=', tenant)
        .where('run_id', '=', runId)
        .where('payload_digest', 'is not', null),
    )
    .execute();
}
