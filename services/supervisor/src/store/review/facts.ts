import type { RunKey } from '@writ/kernel';
import { type Facts, initialFacts, type Policy } from '@writ/policy';
import { pickColumns, prepareQuery, type RowOf } from '@writ/store';
import { facts as factsTable } from '../schema/review.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** The facts of a run; the initial facts of the policy when none are recorded (SV-3). */
export async function loadFacts(
  trx: SupervisorTransaction,
  run: RunKey,
  policy: Policy,
): Promise<Facts> {
  const [row] = (await selectFacts(trx, run)).rows;
  return row === undefined ? initialFacts(policy) : (JSON.parse(row.state) as Facts);
}

const selectFacts = prepareQuery((db: SupervisorReader, { tenant, runId }: RunKey) =>
  db.selectFrom('facts').select('state').where('tenant', '=', tenant).where('run_id', '=', runId),
);

/** Saves the facts of a run. */
export async function saveFacts(
  trx: SupervisorTransaction,
  { tenant, runId }: RunKey,
  facts: Facts,
): Promise<void> {
  const state = JSON.stringify(facts);
  await upsertFacts(trx, { tenant, run_id: runId, state });
}

const upsertFacts = prepareQuery((db: SupervisorReader, row: RowOf<typeof factsTable>) =>
  db
    .insertInto('facts')
    .values(pickColumns(row, factsTable.columns))
    .onConflict((conflict) =>
      conflict
        .columns(['tenant', 'run_id'])
        .doUpdateSet((set) => ({ state: set.ref('excluded.state') })),
    ),
);
