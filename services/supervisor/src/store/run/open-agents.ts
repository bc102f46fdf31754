import type { AgentKey, RunKey } from '@writ/kernel';
import { sql } from 'kysely';
import type { SupervisorReader } from '../supervisor-store.ts';

/** A page of runs that have not ended. */
export interface OpenRunsPage {
  readonly after: RunKey;
  readonly limit: number;
  readonly createdBefore: Date;
}

/**
 * Returns the live agents of a page of runs without an open order, by tenant and run: an order in progress explains any
 * difference to the peers. One statement.
 */
export async function settledAgents(
  db: SupervisorReader,
  { after, limit, createdBefore }: OpenRunsPage,
): Promise<AgentKey[]> {
  const page = db
    .selectFrom('runs')
    .select(['tenant', 'run_id'])
    .where('ended_at', 'is', null)
    .where('created_at', '<=', createdBefore)
    .where((run) =>
      run.or([
        run('tenant', '>', after.tenant),
        run.and([run('tenant', '=', after.tenant), run('run_id', '>', after.runId)]),
      ]),
    )
    .where('run_id', 'not in', openOrders(db))
    .orderBy('tenant')
    .orderBy('run_id')
    .limit(limit)
    .as('page');
  const rows = await db
    .selectFrom(page)
    .innerJoin('agents', (join) =>
      join.onRef('agents.tenant', '=', 'page.tenant').onRef('agents.run_id', '=', 'page.run_id'),
    )
    .select(['agents.tenant', 'agents.run_id', 'agents.instance'])
    .where('agents.ended_at', 'is', null)
    .orderBy('agents.tenant')
    .orderBy('agents.run_id')
    .execute();
  return rows.map((row) => ({ tenant: row.tenant, runId: row.run_id, instance: row.instance }));
}

/** Of these runs, returns those that have ended or are unknown, and have no open order. One statement. */
export async function overRuns<K extends RunKey>(
  db: SupervisorReader,
  runs: readonly K[],
): Promise<K[]> {
  if (runs.length === 0) return [];
  const ids = [...new Set(runs.map(({ runId }) => runId))];
  const held = await db
    .selectFrom('runs')
    .select(['tenant', 'run_id'])
    .where('run_id', 'in', ids)
    .where((run) => run.or([run('ended_at', 'is', null), run('run_id', 'in', openOrders(db))]))
    .execute();
  const isHeld = new Set(held.map((row) => `${row.tenant}/${row.run_id}`));
  return runs.filter(({ tenant, runId }) => !isHeld.has(`${tenant}/${runId}`));
}

function openOrders(db: SupervisorReader) {
  return db.selectFrom('orders').select('run_id').where('state', '=', sql.lit('open'));
}
