import {
  type AgentKey,
  agentKeyText,
  HistoryRetention,
  NotFoundError,
  type RunKey,
} from '@writ/kernel';
import {
  pickColumns,
  preparePerColumns,
  prepareQuery,
  prepareWrite,
  RowCache,
  type RowOf,
} from '@writ/store';
import { type ActiveClock, activeMsAt, cut, seen } from '../../domain/clock/active-clock.ts';
import { agents } from '../schema/agent.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** The row of an agent. */
export type AgentRow = RowOf<typeof agents>;

/** Inserts an agent. */
export async function insertAgent(trx: SupervisorTransaction, agent: AgentRow): Promise<void> {
  await insertRow(trx, agent);
  cache.set(trx, agentKeyText(keyOf(agent)), agent);
}

const insertRow = prepareWrite((db: SupervisorReader, agent: AgentRow) =>
  db.insertInto('agents').values(pickColumns(agent, agents.columns)),
);

/** Rows of live agents. All statements that change the table are in this file. */
const cache = new RowCache<AgentRow>({ areLocked: true });

/** Caches the row of a live agent; removes it from the cache when the agent has ended (CO-2). */
function keep(trx: SupervisorReader, key: AgentKey, row: AgentRow): void {
  if (row.ended_at === null) cache.set(trx, agentKeyText(key), row);
  else cache.delete(trx, agentKeyText(key));
}

/** The agent, undefined if it does not exist. */
export async function findAgent(
  db: SupervisorReader,
  key: AgentKey,
): Promise<AgentRow | undefined> {
  const known = cache.get(db, agentKeyText(key));
  if (known !== undefined) return known;
  const [row] = (await selectAgent(db, key)).rows;
  if (row !== undefined) keep(db, key, row);
  return row;
}

const selectAgent = prepareQuery((db: SupervisorReader, key: AgentKey) =>
  db
    .selectFrom('agents')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('instance', '=', key.instance),
);

/**
 * Loads an agent.
 * @throws NotFoundError AGENT_NOT_FOUND
 */
export async function loadAgent(db: SupervisorReader, key: AgentKey): Promise<AgentRow> {
  const row = await findAgent(db, key);
  if (row !== undefined) return row;
  throw new NotFoundError(
    'AGENT_NOT_FOUND',
    `Agent ${key.instance} does not exist in run ${key.runId}.`,
    { run_id: key.runId, agent: key.instance },
  );
}

/** Deletes an agent that got no slot, unless it has an ending. */
export async function forgetAgent(trx: SupervisorTransaction, key: AgentKey): Promise<void> {
  await trx
    .deleteFrom('agents')
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('instance', '=', key.instance)
    .where('ended_at', 'is', null)
    .execute();
  cache.delete(trx, agentKeyText(key));
}

/** All agents of a run, parents before children. */
export async function agentsOf(db: SupervisorReader, run: RunKey): Promise<AgentRow[]> {
  return (await selectAgents(db, run)).rows;
}

const selectAgents = prepareQuery((db: SupervisorReader, { tenant, runId }: RunKey) =>
  db
    .selectFrom('agents')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .orderBy('depth')
    .orderBy('instance'),
);

/** The children of an agent. */
export async function childrenOf(db: SupervisorReader, parent: AgentKey): Promise<AgentRow[]> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where('tenant', '=', parent.tenant)
    .where('run_id', '=', parent.runId)
    .where('parent_instance', '=', parent.instance)
    .orderBy('instance')
    .execute();
}

/** Updates columns of an agent. */
export async function saveAgent(
  trx: SupervisorTransaction,
  key: AgentKey,
  changes: Partial<AgentRow>,
): Promise<void> {
  if (Object.keys(changes).length === 0) return;
  await updateAgent(changes)(trx, {
    ...changes,
    key_tenant: key.tenant,
    key_run: key.runId,
    key_instance: key.instance,
  });
  const row = cache.get(trx, agentKeyText(key));
  if (row !== undefined) keep(trx, key, { ...row, ...changes });
}

interface AgentChange extends Partial<AgentRow> {
  readonly key_tenant: string;
  readonly key_run: string;
  readonly key_instance: string;
}

const updateAgent = preparePerColumns((columns: readonly (keyof AgentRow)[]) =>
  prepareWrite((db: SupervisorReader, change: AgentChange) =>
    db
      .updateTable('agents')
      .set(pickColumns(change, columns))
      .where('tenant', '=', change.key_tenant)
      .where('run_id', '=', change.key_run)
      .where('instance', '=', change.key_instance),
  ),
);

/** The key of a row. */
export function keyOf(agent: AgentRow): AgentKey {
  return { tenant: agent.tenant, runId: agent.run_id, instance: agent.instance };
}

/** The clock of a row (EM-1). */
export function clockOf(agent: AgentRow): ActiveClock {
  return {
    activeMs: agent.active_ms,
    activeSince: agent.active_since,
    lastSeenAt: agent.last_seen_at,
  };
}

/** The columns of a clock. */
export function clockColumns(
  clock: ActiveClock,
): Pick<AgentRow, 'active_ms' | 'active_since' | 'last_seen_at'> {
  return {
    active_ms: clock.activeMs,
    active_since: clock.activeSince,
    last_seen_at: clock.lastSeenAt,
  };
}

/** Returns the columns that an activity changes; while the clock runs, none of them is indexed. */
export function clockChanges(clock: ActiveClock, agent: AgentRow): Partial<AgentRow> {
  const isSame =
    clock.activeMs === agent.active_ms &&
    clock.activeSince?.getTime() === agent.active_since?.getTime();
  return isSame ? { last_seen_at: clock.lastSeenAt } : clockColumns(clock);
}

/**
 * Records an activity of the agent at `at`, which starts its clock and leaves its state unchanged. Returns its active
 * milliseconds (EM-1).
 */
export async function touchActive(
  trx: SupervisorTransaction,
  agent: AgentRow,
  at: Date,
): Promise<number> {
  const clock = seen(clockOf(agent), at);
  await saveAgent(trx, keyOf(agent), clockColumns(clock));
  return activeMsAt(clock, at);
}

/** Agents of all tenants whose clock runs. */
export async function activeAgents(db: SupervisorReader): Promise<AgentRow[]> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where('active_since', 'is not', null)
    .orderBy('active_since')
    .execute();
}

/** Stops every running clock at the last activity: time without a supervisor does not count. */
export async function cutClocks(trx: SupervisorTransaction): Promise<void> {
  for (const agent of await activeAgents(trx)) {
    await saveAgent(trx, keyOf(agent), clockColumns(cut(clockOf(agent))));
  }
}

/** Deletes the answers and details of all agents of a run (SUP-4). */
export async function purgeAgents(
  trx: SupervisorTransaction,
  { tenant, runId }: RunKey,
): Promise<void> {
  await trx
    .updateTable('agents')
    .set({ ending_answer: null, ending_detail: null, purge_pending: null })
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .execute();
  cache.clear(trx);
}

/**
 * Returns the live and ended agents with content that is to be deleted after the end of their run, parents before
 * children (SUP-4).
 */
export async function agentsToPurge(db: SupervisorReader, run: RunKey): Promise<AgentRow[]> {
  return (await agentsOf(db, run)).filter(({ purge_pending }) => purge_pending !== null);
}

/** Whether the content of an agent was deleted according to its own retention (SUP-4). */
export function isPurged({ retention, purge_pending }: AgentRow): boolean {
  return retention !== HistoryRetention.PERMANENT && purge_pending === null;
}
