import { type SelectQueryBuilder, sql } from 'kysely';
import { type AgentEvent, RESUMED, reduceAgent } from '../domain/agent/state.ts';
import { type AgentRow, findAgent, saveAgent, statusColumns, statusOf } from './agents.ts';
import { type AgentKey, keyOf } from './keys.ts';
import type { LeasedAgent } from './leases.ts';
import type { WorkerDatabase } from './schema.ts';
import { pauseTimersWhileParked } from './timers.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** Which agents at rest are read, at most `most` of them in the order of their keys. */
export interface InactivePage {
  /** Of these tenants, or of all when none is given (SYS-6). */
  readonly tenants: readonly string[];
  /** Only those that come after this one. */
  readonly after: AgentKey | undefined;
  readonly most: number;
}

/** What is kept of an agent that does not run, as far as its slot goes. */
export type InactiveAgentRow = Pick<
  AgentRow,
  'tenant' | 'run_id' | 'instance' | 'state' | 'wake_at' | 'epoch' | 'credentials'
>;

const COLUMNS = [
  'tenant',
  'run_id',
  'instance',
  'state',
  'wake_at',
  'epoch',
  'credentials',
] as const;

/** A page of the agents that sleep. */
export async function suspendedAgents(db: WorkerReader, page: InactivePage): Promise<AgentKey[]> {
  const asleep = db
    .selectFrom('agents')
    .select(['tenant', 'run_id', 'instance'])
    .where('state', '=', 'SUSPENDED')
    .where('ended_at', 'is', null);
  return (await pageOf(asleep, page)).map(keyOf);
}

/** A page of the agents that are parked until they have a slot again: those that do not look by themselves. */
export async function preemptedAgents(
  db: WorkerReader,
  page: InactivePage,
): Promise<InactiveAgentRow[]> {
  const preempted = db
    .selectFrom('agents')
    .select(COLUMNS)
    // Written out, as in the index: a plan that is made for any value could not use it.
    .where('state', '=', sql.lit('PARKED'))
    .where('wake_at', 'is', null);
  return await pageOf(preempted, page);
}

/** An agent as far as its slot goes; undefined when there is none. */
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

/** Lets a preempted agent be taken up again; answers false when that happened already (SB-4). */
export async function resumePreempted(
  trx: WorkerTransaction,
  agent: LeasedAgent,
  at: Date,
): Promise<boolean> {
  return await turn(trx, agent, 'PARKED', { type: 'signalled', name: RESUMED }, at);
}

/**
 * Parks an agent that lost its slot while it slept, so that whoever asked it waits on (SB-4): what wakes
 * it is kept until it has a slot again. Answers false when it sleeps no more.
 */
export async function parkSuspended(
  trx: WorkerTransaction,
  agent: LeasedAgent,
  at: Date,
): Promise<boolean> {
  return await turn(trx, agent, 'SUSPENDED', { type: 'preempted' }, at);
}

/** Has an agent that is at rest, and was not taken up since, go over to another state. */
async function turn(
  trx: WorkerTransaction,
  agent: LeasedAgent,
  from: 'PARKED' | 'SUSPENDED',
  event: AgentEvent,
  at: Date,
): Promise<boolean> {
  const row = await findAgent(trx, agent);
  if (row === undefined || row.epoch !== agent.epoch || row.state !== from) return false;
  const status = reduceAgent(statusOf(row), event);
  await pauseTimersWhileParked(trx, agent, from, status.state, at);
  await saveAgent(trx, agent, statusColumns(status, at));
  return true;
}

/**
 * One page, read along an index. Of several tenants one after the other: a list of them would have the
 * database sort all of their agents for each page.
 */
async function pageOf<Row extends { tenant: string; run_id: string; instance: string }>(
  agents: SelectQueryBuilder<WorkerDatabase, 'agents', Row>,
  { tenants, after, most }: InactivePage,
): Promise<Row[]> {
  const { tenant = '', runId = '', instance = '' } = after ?? {};
  const inOrder = agents.orderBy('tenant').orderBy('run_id').orderBy('instance');
  if (tenants.length === 0) {
    const key = sql<boolean>`(tenant, run_id, instance) > (${tenant}, ${runId}, ${instance})`;
    return await inOrder.where(key).limit(most).execute();
  }
  const rows: Row[] = [];
  for (const one of tenants.toSorted()) {
    if (one < tenant || rows.length === most) continue;
    const from = one === tenant ? [runId, instance] : ['', ''];
    const key = sql<boolean>`(run_id, instance) > (${from[0]}, ${from[1]})`;
    const ofOne = inOrder.where('tenant', '=', one).where(key);
    rows.push(...(await ofOne.limit(most - rows.length).execute()));
  }
  return rows;
}
