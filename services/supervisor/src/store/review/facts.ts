import { type Facts, initialFacts, type Policy } from '@writ/policy';
import type { RunKey } from '../change/changes.ts';
import type { SupervisorTransaction } from '../supervisor-store.ts';

/** The facts of a run as they stand; those of a new run when nothing was recorded yet (SV-3). */
export async function loadFacts(
  trx: SupervisorTransaction,
  { tenant, runId }: RunKey,
  policy: Policy,
): Promise<Facts> {
  const row = await trx
    .selectFrom('facts')
    .select('state')
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .executeTakeFirst();
  return row === undefined ? initialFacts(policy) : (JSON.parse(row.state) as Facts);
}

/** Records the facts of a run in the transaction that changes them. */
export async function saveFacts(
  trx: SupervisorTransaction,
  { tenant, runId }: RunKey,
  facts: Facts,
): Promise<void> {
  const state = JSON.stringify(facts);
  await trx
    .insertInto('facts')
    .values({ tenant, run_id: runId, state })
    .onConflict((conflict) => conflict.columns(['tenant', 'run_id']).doUpdateSet({ state }))
    .execute();
}
