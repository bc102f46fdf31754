import { forgetAnswers } from './requests.ts';
import type { SpawnTransaction } from './spawn-store.ts';

const TABLES = ['requests', 'members', 'pools'] as const;

/** Deletes pools that were closed before `before`, at most `limit`; answers how many. */
export async function prunePools(
  trx: SpawnTransaction,
  before: Date,
  limit: number,
): Promise<number> {
  const old = await trx
    .selectFrom('pools')
    .select(['tenant', 'run_id'])
    .where('closed_at', '<', before)
    .limit(limit)
    .execute();
  for (const { tenant, run_id } of old) {
    for (const table of TABLES)
      await trx
        .deleteFrom(table)
        .where('tenant', '=', tenant)
        .where('run_id', '=', run_id)
        .execute();
  }
  if (old.length > 0) forgetAnswers(trx);
  return old.length;
}
