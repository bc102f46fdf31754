import type { RunKey } from '@writ/kernel';
import { type Facts, initialFacts, type Policy } from '@writ/policy';
import { pickColumns, prepareQuery, prepareWrite, RowCache, type RowOf } from '@writ/store';
import { facts as factsTable } from '../schema/review.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** The facts of a run; the initial facts of the policy when none are recorded (SV-3). */
export async function loadFacts(
  trx: SupervisorTransaction,
  run: RunKey,
  policy: Policy,
): Promise<Facts> {
  const known = cache.get(trx, nameOf(run)) ?? {
    state: (await selectFacts(trx, run)).rows[0]?.state,
  };
  cache.set(trx, nameOf(run), known);
  return known.state === undefined ? initialFacts(policy) : (JSON.parse(known.state) as Facts);
}

/** The recorded facts of live runs; `state` is undefined while none are recorded. */
const cache = new RowCache<{ readonly state: string | undefined }>({ areLocked: true });

function nameOf({ tenant, runId }: RunKey): string {
  return `${tenant}/${runId}`;
}

/** Caches an empty entry for a run that this transaction inserts, because the run has no facts yet. */
export function startFacts(trx: SupervisorTransaction, run: RunKey): void {
  cache.set(trx, nameOf(run), { state: undefined });
}

/** Drops the cached facts of a run that has ended (CO-2). */
export function dropFacts(trx: SupervisorTransaction, run: RunKey): void {
  cache.delete(trx, nameOf(run));
}

/** Deletes the facts of a run (SUP-4). */
export async function deleteFacts(
  trx: SupervisorTransaction,
  { tenant, runId }: RunKey,
): Promise<void> {
  await trx.deleteFrom('facts').where('tenant', '=', tenant).where('run_id', '=', runId).execute();
  dropFacts(trx, { tenant, runId });
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
  cache.set(trx, nameOf({ tenant, runId }), { state });
}

const upsertFacts = prepareWrite((db: SupervisorReader, row: RowOf<typeof factsTable>) =>
  db
    .insertInto('facts')
    .values(pickColumns(row, factsTable.columns))
    .onConflict((conflict) =>
      conflict
        .columns(['tenant', 'run_id'])
        .doUpdateSet((set) => ({ state: set.ref('excluded.state') })),
    ),
);
