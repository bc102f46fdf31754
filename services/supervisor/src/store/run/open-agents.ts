import type { AgentKey, RunKey } from '@writ/kernel';
import { sql } from 'kysely';
import type { SupervisorReader } from '../supervisor-store.ts';

/** A page of live agents. */
export interface LiveAgentsPage {
  readonly after: AgentKey;
  readonly limit: number;
  /** Latest creation time of the runs of these agents. */
  readonly createdBefore: Date;
}

/**
 * Returns a page of the live agents of live runs, by tenant, run and instance. Runs with an open order are omitted,
 * because an order may cause a temporary difference between the supervisor and its peers. A `wake_agent` order that
 * fails because the worker does not know the agent causes no difference, so its run is not omitted. Uses one statement.
 */
export async function settledAgents(
  db: SupervisorReader,
  { after, limit, createdBefore }: LiveAgentsPage,
): Promise<AgentKey[]> {
  const rows = await db
    .selectFrom('runs')
    .innerJoin('agents', (join) =>
      join.onRef('agents.tenant', '=', 'runs.tenant').onRef('agents.run_id', '=', 'runs.run_id'),
    )
    .select(['runs.tenant', 'runs.run_id', 'agents.instance'])
    .where('runs.ended_at', 'is', null)
    .where('runs.created_at', '<=', createdBefore)
    .where('runs.run_id', 'not in', ordersInProgress(db))
    .where('agents.ended_at', 'is', null)
    .where((row) =>
      row.or([
        row('runs.tenant', '>', after.tenant),
        row.and([row('runs.tenant', '=', after.tenant), row('runs.run_id', '>', after.runId)]),
        row.and([
          row('runs.tenant', '=', after.tenant),
          row('runs.run_id', '=', after.runId),
          row('agents.instance', '>', after.instance),
        ]),
      ]),
    )
    .orderBy('runs.tenant')
    .orderBy('runs.run_id')
    .orderBy('agents.instance')
    .limit(limit)
    .execute();
  return rows.map((row) => ({ tenant: row.tenant, runId: row.run_id, instance: row.instance }));
}

/** Returns the given runs that have ended or are unknown, and that have no open order. Uses one statement. */
export async function endedRuns<K extends RunKey>(
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

/** The open orders except those whose agent was unknown at its worker in the last attempt to wake it. */
function ordersInProgress(db: SupervisorReader) {
  return openOrders(db).where((order) =>
    order.or([
      order('kind', '<>', sql.lit('wake_agent')),
      order('last_error', 'is', null),
      order('last_error', '<>', sql.lit('AGENT_NOT_FOUND')),
    ]),
  );
}
