import { isTerminal, type RunState } from '@writ/kernel';
import type { Insertable, Selectable, Updateable } from 'kysely';
import type { AgentStatus } from '../domain/agent/state.ts';
import { type AgentKey, agentColumns, type RunKey, runColumns } from './keys.ts';
import type { AgentsTable } from './schema.ts';
import type { WorkerReader, WorkerTransaction } from './worker-store.ts';

/** One agent as it stands. */
export type AgentRow = Selectable<AgentsTable>;

/** Columns of an agent that may change. */
export type AgentChanges = Updateable<
  Omit<AgentsTable, 'tenant' | 'run_id' | 'instance' | 'epoch' | 'manifest' | 'supervision'>
>;

/** Records a new agent. */
export async function insertAgent(
  trx: WorkerTransaction,
  agent: Insertable<AgentsTable>,
): Promise<void> {
  await trx.insertInto('agents').values(agent).execute();
}

/** Reads an agent; undefined when there is none. */
export async function findAgent(db: WorkerReader, key: AgentKey): Promise<AgentRow | undefined> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where((eb) => eb.and(agentColumns(key)))
    .executeTakeFirst();
}

/** Every agent of a run, oldest first. */
export async function agentsOf(db: WorkerReader, run: RunKey): Promise<AgentRow[]> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where((eb) => eb.and(runColumns(run)))
    .orderBy('created_at')
    .orderBy('instance')
    .execute();
}

/** Writes columns of an agent, whoever runs it: for what comes from outside. */
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

/** Where an agent stands. */
export function statusOf(row: AgentRow): AgentStatus {
  return {
    state: row.state as RunState,
    waitingFor: JSON.parse(row.waiting_for) as string[],
    wakeAt: row.wake_at ?? undefined,
    stopReason: row.stop_reason ?? undefined,
  };
}

/** The columns of a status. An agent that ended has no tokens any more. */
export function statusColumns(status: AgentStatus, at: Date): AgentChanges {
  return {
    state: status.state,
    waiting_for: JSON.stringify(status.waitingFor),
    wake_at: status.wakeAt ?? null,
    stop_reason: status.stopReason ?? null,
    ...(isTerminal(status.state) && { ended_at: at, credentials: null }),
  };
}
