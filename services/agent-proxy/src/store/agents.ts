import type { AgentKey, RunKey } from '@writ/kernel';
import { prepareQuery } from '@writ/store';
import type { Insertable, Selectable, Updateable } from 'kysely';
import type { ProxyReader, ProxyTransaction } from './proxy-store.ts';
import type { AgentsTable, CancelsTable } from './schema.ts';

/** A row of `agents`. */
export type AgentRow = Selectable<AgentsTable>;

/** A row of `cancels`. */
export type CancelRow = Selectable<CancelsTable>;

/** Returns the agent key of a row. */
export function keyOf(row: { tenant: string; run_id: string; instance: string }): AgentKey {
  return { tenant: row.tenant, runId: row.run_id, instance: row.instance };
}

/** Inserts a new agent. */
export async function insertAgent(
  trx: ProxyTransaction,
  agent: Insertable<AgentsTable>,
): Promise<void> {
  await trx.insertInto('agents').values(agent).execute();
}

/** Returns an agent, or undefined when it does not exist. */
export async function findAgent(db: ProxyReader, key: AgentKey): Promise<AgentRow | undefined> {
  return (await selectAgent(db, key)).rows[0];
}

const selectAgent = prepareQuery((db: ProxyReader, { tenant, runId, instance }: AgentKey) =>
  db
    .selectFrom('agents')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('instance', '=', instance),
);

/** Returns the latest sub-agent whose client id has this SHA-256; undefined when there is none. */
export async function latestNamed(
  db: ProxyReader,
  { tenant, runId: run_id }: RunKey,
  client_id: string,
): Promise<AgentRow | undefined> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where((eb) => eb.and({ tenant, run_id, client_id }))
    .orderBy('created_at', 'desc')
    .orderBy('instance', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** Returns the agents of a run. */
export async function agentsOf(db: ProxyReader, run: RunKey): Promise<AgentRow[]> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where((eb) => eb.and({ tenant: run.tenant, run_id: run.runId }))
    .orderBy('instance')
    .execute();
}

/** Updates an agent. */
export async function saveAgent(
  trx: ProxyTransaction,
  key: AgentKey,
  changes: Updateable<Omit<AgentsTable, 'tenant' | 'run_id' | 'instance'>>,
): Promise<void> {
  const { tenant, runId: run_id, instance } = key;
  await trx
    .updateTable('agents')
    .set(changes)
    .where((eb) => eb.and({ tenant, run_id, instance }))
    .execute();
}

/** Maximum number of agents that {@link unusedAgents} returns. */
export const UNUSED_PAGE = 200;

/** Position after which a page of unused agents begins. */
export type UnusedPosition = Pick<AgentRow, 'used_at' | 'run_id' | 'instance'>;

/** Position before the first agent. */
export const FIRST_UNUSED: UnusedPosition = { used_at: new Date(0), run_id: '', instance: '' };

/**
 * Returns at most UNUSED_PAGE agents that have not ended and whose recorded use (`used_at`) is before `usedBefore`, the
 * longest unused first, beginning after the position `after`.
 */
export async function unusedAgents(
  db: ProxyReader,
  usedBefore: Date,
  after: UnusedPosition,
): Promise<readonly AgentRow[]> {
  return (await selectUnused(db, { ...after, used_before: usedBefore })).rows;
}

const selectUnused = prepareQuery(
  (
    db: ProxyReader,
    { used_at, run_id, instance, used_before }: UnusedPosition & { readonly used_before: Date },
  ) =>
    db
      .selectFrom('agents')
      .selectAll()
      .where('ended_at', 'is', null)
      .where('used_at', '<', used_before)
      .where((eb) =>
        eb(eb.refTuple('used_at', 'run_id', 'instance'), '>', eb.tuple(used_at, run_id, instance)),
      )
      .orderBy('used_at')
      .orderBy('run_id')
      .orderBy('instance')
      .limit(UNUSED_PAGE),
);

/** Records a cancellation. */
export async function insertCancel(trx: ProxyTransaction, cancel: CancelRow): Promise<void> {
  await trx.insertInto('cancels').values(cancel).execute();
}

/** Returns the cancellations of a run, oldest first. */
export async function cancelsOf(db: ProxyReader, run: RunKey): Promise<CancelRow[]> {
  return await db
    .selectFrom('cancels')
    .selectAll()
    .where((eb) => eb.and({ tenant: run.tenant, run_id: run.runId }))
    .orderBy('cancelled_at')
    .execute();
}
