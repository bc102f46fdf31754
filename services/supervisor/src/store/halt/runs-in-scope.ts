import type { RunKey, Scope } from '@writ/kernel';
import type { SupervisorReader } from '../supervisor-store.ts';

const PAGE = 100;

/** The runs in progress in a scope, in pages, so that no transaction covers them all. */
export async function* runsInScope(db: SupervisorReader, scope: Scope): AsyncGenerator<RunKey> {
  let after: RunKey | undefined;
  while (true) {
    const page = await readPage(db, scope, after);
    yield* page;
    after = page.at(-1);
    if (page.length < PAGE || after === undefined) return;
  }
}

async function readPage(
  db: SupervisorReader,
  { tenant, runId }: Scope,
  after: RunKey | undefined,
): Promise<RunKey[]> {
  let query = db.selectFrom('runs').select(['tenant', 'run_id']).where('ended_at', 'is', null);
  if (tenant !== undefined) query = query.where('tenant', '=', tenant);
  if (runId !== undefined) query = query.where('run_id', '=', runId);
  if (after !== undefined) {
    query = query.where((row) =>
      row.or([
        row('tenant', '>', after.tenant),
        row.and([row('tenant', '=', after.tenant), row('run_id', '>', after.runId)]),
      ]),
    );
  }
  const rows = await query.orderBy('tenant').orderBy('run_id').limit(PAGE).execute();
  return rows.map((row) => ({ tenant: row.tenant, runId: row.run_id }));
}

/**
 * The tenants that a halt of everything, ordered at `orderedAt`, stops: those with a run that is in progress, or that
 * has ended since the order.
 */
export async function stoppedTenants(db: SupervisorReader, orderedAt: Date): Promise<string[]> {
  // No index covers the end times of the runs of all tenants, so the query starts from the tenants: every tenant with a
  // run has an audit chain or an unlinked audit record.
  const tenants = db
    .selectFrom('audit_chains')
    .select('tenant')
    .union(db.selectFrom('audit').select('tenant').where('sequence', 'is', null));
  const rows = await db
    .selectFrom('runs')
    .select('tenant')
    .where('ended_at', 'is', null)
    .union((query) =>
      query
        .selectFrom(tenants.as('known'))
        .select('known.tenant')
        .where(({ exists, selectFrom }) =>
          exists(
            selectFrom('runs')
              .select('run_id')
              .whereRef('runs.tenant', '=', 'known.tenant')
              .where('changed_at', '>=', orderedAt),
          ),
        ),
    )
    .orderBy('tenant')
    .execute();
  return rows.map(({ tenant }) => tenant);
}
