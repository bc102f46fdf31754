import type { AgentKey } from '@writ/kernel';
import { type SelectQueryBuilder, sql } from 'kysely';
import { type AgentEvent, RESUMED, reduceAgent } from '../domain/agent/state.ts';
import { type AgentRow, findAgent, saveAgent, statusColumns, statusOf } from './agents.ts';
import { keyOf } from './keys.ts';
import type { LeasedAgent } from './leases.ts';
import type { WorkerDatabase } from './schema.ts';
import { pauseTimersWhileParked } from './timers.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** A page of inactive agents, in key order. */
export interface InactivePage {
  /** Tenants to include; empty for all (SYS-6). */
  readonly tenants: readonly string[];
  /** Exclusive lower bound. */
  readonly after: AgentKey | undefined;
  readonly limit: number;
}

/** The columns of an inactive agent that its slot renewal needs. */
export type InactiveAgentRow = Pick<
  AgentRow,
  'tenant' | 'run_id' | 'instance' | 'state' | 'waiting_for' | 'wake_at' | 'epoch' | 'credentials'
>;

const COLUMNS = [
  'tenant',
  'run_id',
  'instance',
  'state',
  'waiting_for',
  'wake_at',
  'epoch',
  'credentials',
] as const;

/** Returns a page of suspended agents. */
export async function suspendedAgents(db: WorkerReader, page: InactivePage): Promise<AgentKey[]> {
  const suspended = db
    .selectFrom('agents')
    .select(['tenant', 'run_id', 'instance'])
    .where('state', '=', 'SUSPENDED')
    .where('ended_at', 'is', null);
  return (await pageOf(suspended, page)).map(keyOf);
}

/** Returns a page of preempted agents; preempted agents have no wake-up time. */
export async function preemptedAgents(
  db: WorkerReader,
  page: InactivePage,
): Promise<InactiveAgentRow[]> {
  const preempted = db
    .selectFrom('agents')
    .select(COLUMNS)
    // A literal, as in the predicate of the partial index: a generic plan with a parameter could not use the index.
    .where('state', '=', sql.lit('PARKED'))
    .where('wake_at', 'is', null);
  return await pageOf(preempted, page);
}

/** Returns an agent in any state, or undefined when it does not exist. */
export async function findInactive(
  db: WorkerReader,
  { tenant, runId, instance }: AgentKey,
): Promise<InactiveAgentRow | undefined> {
  return await db
    .selectFrom('agents')
    .select(COLUMNS)
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('instance', '=', instance)
    .executeTakeFirst();
}

/** Makes a preempted agent runnable; returns false when it is no longer parked (SB-4). */
export async function resumePreempted(
  trx: WorkerTransaction,
  agent: LeasedAgent,
  at: Date,
): Promise<boolean> {
  return await changeStatus(
    trx,
    agent,
    { from: 'PARKED', event: { type: 'signalled', name: RESUMED } },
    at,
  );
}

/**
 * Parks a suspended agent that lost its slot to a waiting agent (SB-4). Its signals are kept until it has a slot
 * again. Returns false when the agent is no longer suspended.
 */
export async function parkSuspended(
  trx: WorkerTransaction,
  agent: LeasedAgent,
  at: Date,
): Promise<boolean> {
  return await changeStatus(trx, agent, { from: 'SUSPENDED', event: { type: 'preempted' } }, at);
}

/** Changes the status of an inactive agent that has not been claimed since it was read. */
async function changeStatus(
  trx: WorkerTransaction,
  agent: LeasedAgent,
  { from, event }: { readonly from: 'PARKED' | 'SUSPENDED'; readonly event: AgentEvent },
  at: Date,
): Promise<boolean> {
  const row = await findAgent(trx, agent);
  if (row === undefined || row.epoch !== agent.epoch || row.state !== from) return false;
  const status = reduceAgent(statusOf(row), event);
  await pauseTimersWhileParked(trx, agent, { from, to: status.state }, at);
  await saveAgent(trx, agent, statusColumns(status, at));
  return true;
}

/**
 * Reads one page along an index. Tenants are read one after the other, because with a list of tenants the database
 * would sort all agents of these tenants for each page.
 */
async function pageOf<Row extends { tenant: string; run_id: string; instance: string }>(
  agents: SelectQueryBuilder<WorkerDatabase, 'agents', Row>,
  { tenants, after, limit }: InactivePage,
): Promise<Row[]> {
  const { tenant = '', runId = '', instance = '' } = after ?? {};
  const inOrder = agents.orderBy('tenant').orderBy('run_id').orderBy('instance');
  if (tenants.length === 0) {
    const key = sql<boolean>`(tenant, run_id, instance) > (${tenant}, ${runId}, ${instance})`;
    return await inOrder.where(key).limit(limit).execute();
  }
  const rows: Row[] = [];
  for (const one of tenants.toSorted()) {
    if (one < tenant || rows.length === limit) continue;
    const from = one === tenant ? [runId, instance] : ['', ''];
    const key = sql<boolean>`(run_id, instance) > (${from[0]}, ${from[1]})`;
    const ofOne = inOrder.where('tenant', '=', one).where(key);
    rows.push(...(await ofOne.limit(limit - rows.length).execute()));
  }
  return rows;
}
