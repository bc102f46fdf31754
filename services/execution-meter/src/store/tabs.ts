import { type AgentKey, agentKeyText } from '@writ/kernel';
import { pickColumns, prepareQuery, prepareWrite, RowCache } from '@writ/store';
import { type Selectable, sql } from 'kysely';
import type { NearBudget } from '../domain/ledger/near-budget.ts';
import type { MeterReader, MeterTransaction } from './meter-store.ts';
import { type TabTable, tabs } from './schema.ts';

/** Name and instance of an agent. */
interface AgentName {
  readonly name: string;
  readonly instance: string;
}

/** Retention of recorded answers (SUP-4). */
export type Retention = 'none' | 'run' | 'permanent';

/** The tab of an agent without its balances. */
export interface StoredTab extends AgentKey {
  readonly agentName: string;
  readonly parent: AgentName | undefined;
  readonly sessionId: string;
  readonly state: 'open' | 'closed';
  /** Allowed catalog aliases. */
  readonly models: readonly string[];
  readonly priority: number;
  readonly deadline: Date | undefined;
  readonly near: NearBudget;
  readonly retention: Retention;
  readonly requestId: string;
  readonly requestDigest: string;
  /** Key that authenticates the events of the run, in hexadecimal; empty if there is none. */
  readonly eventKey: string;
  readonly epoch: bigint | undefined;
  readonly openedAt: Date;
  readonly closedAt: Date | undefined;
}

/** Cache of open tabs; closed tabs are rarely read again. All statements that change the table are in this file. */
const cache = new RowCache<StoredTab>({ areLocked: true });

/** Returns the tab of an agent; undefined when it does not exist. */
export async function findTab(db: MeterReader, key: AgentKey): Promise<StoredTab | undefined> {
  const known = cache.get(db, agentKeyText(key));
  if (known !== undefined) return known;
  const { rows } = await selectTab(db, key);
  const tab = rows[0] && toTab(rows[0]);
  if (tab !== undefined) cacheTab(db, tab);
  return tab;
}

function cacheTab(db: MeterReader, tab: StoredTab): void {
  if (tab.state === 'open') cache.set(db, agentKeyText(tab), tab);
  else cache.delete(db, agentKeyText(tab));
}

const selectTab = prepareQuery((db: MeterReader, key: AgentKey) =>
  db
    .selectFrom('tabs')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('agent_instance', '=', key.instance),
);

/** Returns the agents of a run that have a tab. */
export async function instancesOf(
  db: MeterReader,
  { tenant, runId }: Pick<AgentKey, 'tenant' | 'runId'>,
): Promise<string[]> {
  const rows = await db
    .selectFrom('tabs')
    .select('agent_instance')
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .execute();
  return rows.map(({ agent_instance }) => agent_instance);
}

/** Adds a tab. */
export async function insertTab(trx: MeterTransaction, tab: StoredTab): Promise<void> {
  await insertRow(trx, {
    tenant: tab.tenant,
    run_id: tab.runId,
    agent_instance: tab.instance,
    agent_name: tab.agentName,
    parent_name: tab.parent?.name ?? null,
    parent_instance: tab.parent?.instance ?? null,
    session_id: tab.sessionId,
    state: tab.state,
    models: JSON.stringify(tab.models),
    priority: tab.priority,
    deadline_at: tab.deadline ?? null,
    reserve_tokens: tab.near.reserveTokens,
    reserve_cost_ppm: tab.near.reserveCostPpm,
    retention: tab.retention,
    request_id: tab.requestId,
    request_digest: tab.requestDigest,
    event_key: tab.eventKey,
    epoch: tab.epoch ?? null,
    opened_at: tab.openedAt,
    closed_at: tab.closedAt ?? null,
  });
  cacheTab(trx, tab);
}

const insertRow = prepareWrite((db: MeterReader, row: TabTable) =>
  db.insertInto('tabs').values(pickColumns(row, tabs.columns)),
);

/** Returns the keys of one page of open tabs, ordered by tenant, run and agent. */
export async function openTabs(
  db: MeterReader,
  page: {
    readonly after: AgentKey | undefined;
    readonly limit: number;
    readonly openedBefore: Date;
  },
): Promise<AgentKey[]> {
  const { tenant, runId, instance } = page.after ?? {
    tenant: '',
    runId: '',
    instance: '',
  };
  const rows = await db
    .selectFrom('tabs')
    .select(['tenant', 'run_id', 'agent_instance'])
    .where('state', '=', sql.lit('open'))
    .where('opened_at', '<=', page.openedBefore)
    .where((tab) =>
      tab.or([
        tab('tenant', '>', tenant),
        tab.and([tab('tenant', '=', tenant), tab('run_id', '>', runId)]),
        tab.and([
          tab('tenant', '=', tenant),
          tab('run_id', '=', runId),
          tab('agent_instance', '>', instance),
        ]),
      ]),
    )
    .orderBy('tenant')
    .orderBy('run_id')
    .orderBy('agent_instance')
    .limit(page.limit)
    .execute();
  return rows.map((row) => ({
    tenant: row.tenant,
    runId: row.run_id,
    instance: row.agent_instance,
  }));
}

/**
 * Closes a tab and returns it.
 * @param tab as read in this transaction
 */
export async function closeTab(
  trx: MeterTransaction,
  tab: StoredTab,
  at: Date,
): Promise<StoredTab> {
  const { tenant, runId, instance } = tab;
  await updateClosed(trx, { tenant, runId, instance, at });
  const closed: StoredTab = { ...tab, state: 'closed', closedAt: at };
  cacheTab(trx, closed);
  return closed;
}

/**
 * Stores `epoch` as the highest lease epoch of the agent's worker (RT-2).
 * @param tab as read in this transaction
 */
export async function raiseEpoch(
  trx: MeterTransaction,
  tab: StoredTab,
  epoch: bigint,
): Promise<void> {
  const { tenant, runId, instance } = tab;
  await updateEpoch(trx, { tenant, runId, instance, epoch });
  cacheTab(trx, { ...tab, epoch });
}

const updateClosed = prepareWrite(
  (db: MeterReader, { tenant, runId, instance, at }: AgentKey & { readonly at: Date }) =>
    db
      .updateTable('tabs')
      .set({ state: 'closed', closed_at: at })
      .where('tenant', '=', tenant)
      .where('run_id', '=', runId)
      .where('agent_instance', '=', instance),
);

const updateEpoch = prepareWrite(
  (db: MeterReader, { tenant, runId, instance, epoch }: AgentKey & { readonly epoch: bigint }) =>
    db
      .updateTable('tabs')
      .set({ epoch })
      .where('tenant', '=', tenant)
      .where('run_id', '=', runId)
      .where('agent_instance', '=', instance),
);

function toTab(row: Selectable<TabTable>): StoredTab {
  return {
    tenant: row.tenant,
    runId: row.run_id,
    instance: row.agent_instance,
    agentName: row.agent_name,
    parent:
      row.parent_name === null || row.parent_instance === null
        ? undefined
        : { name: row.parent_name, instance: row.parent_instance },
    sessionId: row.session_id,
    state: row.state === 'open' ? 'open' : 'closed',
    models: JSON.parse(row.models) as string[],
    priority: row.priority,
    deadline: row.deadline_at ?? undefined,
    near: { reserveTokens: row.reserve_tokens, reserveCostPpm: row.reserve_cost_ppm },
    retention: row.retention as Retention,
    requestId: row.request_id,
    requestDigest: row.request_digest,
    eventKey: row.event_key,
    epoch: row.epoch ?? undefined,
    openedAt: row.opened_at,
    closedAt: row.closed_at ?? undefined,
  };
}
