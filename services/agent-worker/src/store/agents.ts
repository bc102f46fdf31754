import { type AgentKey, agentKeyText, isTerminal, type RunKey, type RunState } from '@writ/kernel';
import { pickColumns, prepareQuery, prepareWrite } from '@writ/store';
import type { Insertable, Selectable, Updateable } from 'kysely';
import type { AgentStatus } from '../domain/agent/state.ts';
import { agentColumns, keyOf, runColumns } from './keys.ts';
import { type AgentsTable, agents } from './schema.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** A row of `agents`. */
export type AgentRow = Selectable<AgentsTable>;

/** Columns that may change. */
export type AgentChanges = Updateable<
  Omit<AgentsTable, 'tenant' | 'run_id' | 'instance' | 'epoch' | 'manifest' | 'supervision'>
>;

/** Inserts a new agent. */
export async function insertAgent(
  trx: WorkerTransaction,
  agent: Insertable<AgentsTable>,
): Promise<void> {
  await insertRow(trx, agent);
}

const insertRow = prepareWrite((db: WorkerReader, row: Insertable<AgentsTable>) =>
  db.insertInto('agents').values(pickColumns(row, agents.columns)),
);

/** Returns an agent, or undefined when it does not exist. */
export async function findAgent(db: WorkerReader, key: AgentKey): Promise<AgentRow | undefined> {
  const { rows } = await selectAgent(db, key);
  return rows[0];
}

const selectAgent = prepareQuery((db: WorkerReader, key: AgentKey) =>
  db
    .selectFrom('agents')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('instance', '=', key.instance),
);

/** Returns the agents of a run, oldest first. */
export async function agentsOf(db: WorkerReader, run: RunKey): Promise<AgentRow[]> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where((eb) => eb.and(runColumns(run)))
    .orderBy('created_at')
    .orderBy('instance')
    .execute();
}

/** Updates an agent without checking its lease, for changes from outside the runtime. */
export async function saveAgent(
  trx: WorkerTransaction,
  key: AgentKey,
  changes: AgentChanges,
): Promise<void> {
  await trx
    .updateTable('agents')
    .set(changes)
    .where((eb) => eb.and(agentColumns(key)))
    .execute();
}

/**
 * Returns true for each agent that has not ended, false for each that has ended, and undefined for unknown agents, in
 * the order of `agents`. Runs one statement for all agents.
 */
export async function livingAgents(
  db: WorkerReader,
  agents: readonly AgentKey[],
): Promise<(boolean | undefined)[]> {
  if (agents.length === 0) return [];
  const rows = await db
    .selectFrom('agents')
    .select(['tenant', 'run_id', 'instance', 'ended_at'])
    // The primary key starts with the tenant.
    .where('tenant', 'in', [...new Set(agents.map(({ tenant }) => tenant))])
    .where('run_id', 'in', [...new Set(agents.map(({ runId }) => runId))])
    .execute();
  const isLiving = new Map(rows.map((row) => [agentKeyText(keyOf(row)), row.ended_at === null]));
  return agents.map((key) => isLiving.get(agentKeyText(key)));
}

/** Returns the status of an agent. */
export function statusOf(row: AgentRow): AgentStatus {
  return {
    state: row.state as RunState,
    waitingFor: JSON.parse(row.waiting_for) as string[],
    wakeAt: row.wake_at ?? undefined,
    stopReason: row.stop_reason ?? undefined,
  };
}

/**
 * Returns the columns of a status. A terminal status also clears the tokens, the first reads and the partial final
 * answer.
 */
export function statusColumns(status: AgentStatus, at: Date): AgentChanges {
  return {
    state: status.state,
    waiting_for: JSON.stringify(status.waitingFor),
    wake_at: status.wakeAt ?? null,
    stop_reason: status.stopReason ?? null,
    ...(isTerminal(status.state) && {
      ended_at: at,
      credentials: null,
      first_reads: null,
      partial_final: null,
    }),
  };
}
