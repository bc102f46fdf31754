import { sql } from 'kysely';
import { RESUMED, reduceAgent } from '../domain/agent/state.ts';
import { type AgentRow, findAgent, saveAgent, statusColumns, statusOf } from './agents.ts';
import { type AgentKey, keyOf } from './keys.ts';
import type { LeasedAgent } from './leases.ts';
import { followParking } from './timers.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/**
 * At most `most` agents that sleep, in the order of their keys and after one of them; of some tenants, or
 * of all when none is given (SYS-6).
 */
export async function sleepingAgents(
  db: WorkerReader,
  tenants: readonly string[],
  after: AgentKey | undefined,
  most: number,
): Promise<AgentKey[]> {
  const { tenant = '', runId = '', instance = '' } = after ?? {};
  const rows = await db
    .selectFrom('agents')
    .select(['tenant', 'run_id', 'instance'])
    .$if(tenants.length > 0, (query) => query.where('tenant', 'in', [...tenants]))
    .where('state', '=', 'SUSPENDED')
    .where(sql<boolean>`(tenant, run_id, instance) > (${tenant}, ${runId}, ${instance})`)
    .orderBy('tenant')
    .orderBy('run_id')
    .orderBy('instance')
    .limit(most)
    .execute();
  return rows.map(keyOf);
}

/** Agents that are parked until they have a slot again: those that do not look by themselves. */
export async function preemptedAgents(
  db: WorkerReader,
  tenants: readonly string[],
): Promise<AgentRow[]> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .$if(tenants.length > 0, (query) => query.where('tenant', 'in', [...tenants]))
    .where('state', '=', 'PARKED')
    .where('wake_at', 'is', null)
    .execute();
}

/** Lets a preempted agent be taken up again; answers false when that happened already (SB-4). */
export async function resumePreempted(
  trx: WorkerTransaction,
  agent: LeasedAgent,
  at: Date,
): Promise<boolean> {
  const row = await findAgent(trx, agent);
  if (row === undefined || row.epoch !== agent.epoch || row.state !== 'PARKED') return false;
  const status = reduceAgent(statusOf(row), { type: 'signalled', name: RESUMED });
  await followParking(trx, agent, 'PARKED', status.state, at);
  await saveAgent(trx, agent, statusColumns(status, at));
  return true;
}
