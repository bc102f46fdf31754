import { prepareQuery, RowCache } from '@writ/store';
import type { Selectable } from 'kysely';
import { type AgentKey, agentText } from '../domain/agent-key.ts';
import type { NearBudget } from '../domain/ledger/balance.ts';
import type { MeterReader, MeterTransaction } from './meter-store.ts';
import type { TabTable } from './schema.ts';

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
  readonly epoch: bigint | undefined;
  readonly openedAt: Date;
  readonly closedAt: Date | undefined;
}

const cache = new RowCache<StoredTab>();

/** Returns the tab of an agent; undefined when it does not exist. */
export async function findTab(db: MeterReader, key: AgentKey): Promise<StoredTab | undefined> {
  const known = cache.get(db, agentText(key));
  if (known !== undefined) return known;
  const { rows } = await selectTab(db, key);
  const tab = rows[0] && toTab(rows[0]);
  if (tab !== undefined) cache.set(db, agentText(key), tab);
  return tab;
}

const selectTab = prepareQuery((db: MeterReader, key: AgentKey) =>
  db
    .selectFrom('tabs')
    .selectAll()
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('agent_instance', '=', key.agentInstance),
);

/** Adds a tab. */
export async function insertTab(trx: MeterTransaction, tab: StoredTab): Promise<void> {
  await trx
    .insertInto('tabs')
    .values({
      tenant: tab.tenant,
      run_id: tab.runId,
      agent_instance: tab.agentInstance,
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
      epoch: tab.epoch ?? null,
      opened_at: tab.openedAt,
      closed_at: tab.closedAt ?? null,
    })
    .execute();
}

/** Closes a tab. */
export async function markClosed(trx: MeterTransaction, key: AgentKey, at: Date): Promise<void> {
  await update(trx, key, { state: 'closed', closed_at: at });
}

/** Stores the highest lease epoch of the worker of the agent (RT-2). */
export async function raiseEpoch(
  trx: MeterTransaction,
  key: AgentKey,
  epoch: bigint,
): Promise<void> {
  await update(trx, key, { epoch });
}

async function update(
  trx: MeterTransaction,
  key: AgentKey,
  values: Partial<TabTable>,
): Promise<void> {
  await trx
    .updateTable('tabs')
    .set(values)
    .where('tenant', '=', key.tenant)
    .where('run_id', '=', key.runId)
    .where('agent_instance', '=', key.agentInstance)
    .execute();
  cache.delete(trx, agentText(key));
}

function toTab(row: Selectable<TabTable>): StoredTab {
  return {
    tenant: row.tenant,
    runId: row.run_id,
    agentInstance: row.agent_instance,
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
    epoch: row.epoch ?? undefined,
    openedAt: row.opened_at,
    closedAt: row.closed_at ?? undefined,
  };
}
