import { type AgentKey, agentKeyText } from '@writ/kernel';
import { pickColumns, prepareQuery, prepareWrite, RowCache } from '@writ/store';
import type { Selectable } from 'kysely';
import { type Entry, type EntryKind, type EntryState, isHolding } from '../domain/ledger/entry.ts';
import { NO_USAGE } from '../domain/ledger/spending.ts';
import type { MeterReader, MeterTransaction } from './meter-store.ts';
import { type EntryTable, entries } from './schema.ts';

/** Identifies one entry of a tab. */
export interface EntryId {
  readonly kind: EntryKind;
  readonly callId: string;
  /** From 1 for model calls, else 0. */
  readonly attempt: number;
}

/** Attributes of an entry. */
export interface EntryNotes {
  /** Catalog alias; empty when unknown. */
  readonly model: string;
  /** Digest of the request that created it. */
  readonly requestDigest: string;
  /** Digest of the request that settled it; undefined before. */
  readonly settleDigest: string | undefined;
  readonly expiresAt: Date | undefined;
}

/** A stored entry. */
export interface StoredEntry extends EntryId, EntryNotes {
  readonly entry: Entry;
  /** UTC day whose caps apply to the entry. */
  readonly day: string;
}

/** An entry that holds budget, with its agent. */
export interface HoldingEntry extends AgentKey {
  readonly id: EntryId;
}

/**
 * Caches, on SQLite, the entries that this process inserted and has not updated since, because the same process usually
 * settles them. On PostgreSQL nothing is cached.
 */
const cache = new RowCache<StoredEntry>();

/** Returns an entry of a tab; undefined when it does not exist. */
export async function findEntry(
  db: MeterReader,
  key: AgentKey,
  id: EntryId,
): Promise<StoredEntry | undefined> {
  const known = cache.get(db, cacheKey(key, id));
  if (known !== undefined) return known;
  const { rows } = await selectEntry(db, {
    tenant: key.tenant,
    runId: key.runId,
    instance: key.instance,
    kind: id.kind,
    callId: id.callId,
    attempt: id.attempt,
  });
  return rows[0] && toEntry(rows[0]);
}

function cacheKey(key: AgentKey, { kind, callId, attempt }: EntryId): string {
  return `${agentKeyText(key)}/${kind}/${callId}/${attempt}`;
}

const selectEntry = prepareQuery((db: MeterReader, id: AgentKey & EntryId) =>
  db
    .selectFrom('entries')
    .selectAll()
    .where('tenant', '=', id.tenant)
    .where('run_id', '=', id.runId)
    .where('agent_instance', '=', id.instance)
    .where('kind', '=', id.kind)
    .where('call_id', '=', id.callId)
    .where('attempt', '=', id.attempt),
);

/** Adds an entry. */
export async function insertEntry(
  trx: MeterTransaction,
  tab: AgentKey & { readonly sessionId: string; readonly agentName: string },
  made: StoredEntry,
  at: Date,
): Promise<void> {
  const { entry, day, ...stored } = made;
  await insertRow(trx, {
    tenant: tab.tenant,
    run_id: tab.runId,
    agent_instance: tab.instance,
    kind: stored.kind,
    call_id: stored.callId,
    attempt: stored.attempt,
    session_id: tab.sessionId,
    agent_name: tab.agentName,
    day,
    held_input: entry.held.usage.input,
    held_output: entry.held.usage.output,
    held_cost: entry.held.cost,
    held_turns: entry.held.turns,
    request_digest: stored.requestDigest,
    created_at: at,
    expires_at: stored.expiresAt ?? null,
    ...outcomeColumns(entry, stored, at),
  });
  if (isHolding(entry)) cache.set(trx, cacheKey(tab, made), made);
}

/** Updates the state and the settlement of an entry. */
export async function updateEntry(
  trx: MeterTransaction,
  key: AgentKey,
  { entry, ...stored }: StoredEntry,
  at: Date,
): Promise<void> {
  await updateRow(trx, {
    tenant: key.tenant,
    run_id: key.runId,
    agent_instance: key.instance,
    kind: stored.kind,
    call_id: stored.callId,
    attempt: stored.attempt,
    ...outcomeColumns(entry, stored, at),
  });
  cache.delete(trx, cacheKey(key, stored));
}

const KEY = ['tenant', 'run_id', 'agent_instance', 'kind', 'call_id', 'attempt'] as const;

const OUTCOME = [
  'state',
  'model',
  'settle_digest',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_input_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost',
  'turns',
  'estimated',
  'failed',
  'exceeded',
  'by_expiry',
  'ended_at',
] as const;

const insertRow = prepareWrite((db: MeterReader, row: EntryTable) =>
  db.insertInto('entries').values(pickColumns(row, entries.columns)),
);

const updateRow = prepareWrite(
  (db: MeterReader, row: Pick<EntryTable, (typeof KEY)[number] | (typeof OUTCOME)[number]>) =>
    db
      .updateTable('entries')
      .set(pickColumns(row, OUTCOME))
      .where('tenant', '=', row.tenant)
      .where('run_id', '=', row.run_id)
      .where('agent_instance', '=', row.agent_instance)
      .where('kind', '=', row.kind)
      .where('call_id', '=', row.call_id)
      .where('attempt', '=', row.attempt),
);

/** Whether an agent has a reservation or a model call that has not ended, including a call between two attempts. */
export async function isHeld(trx: MeterTransaction, key: AgentKey): Promise<boolean> {
  return (await selectHeld(trx, key)).rows.length > 0;
}

const selectHeld = prepareQuery((db: MeterReader, { tenant, runId, instance }: AgentKey) =>
  db
    .selectFrom('entries')
    .select('call_id')
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('agent_instance', '=', instance)
    .where('state', 'in', ['reserved', 'sent'])
    .unionAll((union) =>
      union
        .selectFrom('calls')
        .select('call_id')
        .where('tenant', '=', tenant)
        .where('run_id', '=', runId)
        .where('agent_instance', '=', instance)
        .where('state', '=', 'running'),
    )
    .limit(1),
);

/** Returns up to `limit` entries that hold budget; with `expiredBefore`, only entries that expired by this time. */
export async function holdingEntries(
  db: MeterReader,
  filter: { readonly expiredBefore?: Date; readonly kind?: EntryKind; readonly limit: number },
): Promise<HoldingEntry[]> {
  let query = db
    .selectFrom('entries')
    .select(['tenant', 'run_id', 'agent_instance', 'kind', 'call_id', 'attempt'])
    .where('state', 'in', ['reserved', 'sent'])
    .limit(filter.limit);
  if (filter.expiredBefore !== undefined) {
    query = query.where('expires_at', '<=', filter.expiredBefore);
  }
  if (filter.kind !== undefined) query = query.where('kind', '=', filter.kind);
  const rows = await query.execute();
  return rows.map((row) => ({
    tenant: row.tenant,
    runId: row.run_id,
    instance: row.agent_instance,
    id: { kind: row.kind as EntryKind, callId: row.call_id, attempt: row.attempt },
  }));
}

function outcomeColumns(
  { state, spent, exceeded, byExpiry }: Entry,
  { model, settleDigest }: EntryNotes,
  at: Date,
) {
  const { usage, cost, turns, estimated, failed } = spent;
  return {
    state,
    model,
    settle_digest: settleDigest ?? null,
    input_tokens: usage.input,
    cached_input_tokens: usage.cachedInput,
    cache_write_input_tokens: usage.cacheWrite,
    output_tokens: usage.output,
    reasoning_tokens: usage.reasoning,
    cost,
    turns,
    estimated,
    failed,
    exceeded,
    by_expiry: byExpiry,
    ended_at: state === 'settled' || state === 'released' ? at : null,
  };
}

function toEntry(row: Selectable<EntryTable>): StoredEntry {
  return {
    kind: row.kind as EntryKind,
    callId: row.call_id,
    attempt: row.attempt,
    model: row.model,
    day: row.day,
    requestDigest: row.request_digest,
    settleDigest: row.settle_digest ?? undefined,
    expiresAt: row.expires_at ?? undefined,
    entry: {
      kind: row.kind as EntryKind,
      state: row.state as EntryState,
      held: {
        usage: { ...NO_USAGE, input: row.held_input, output: row.held_output },
        cost: row.held_cost,
        turns: row.held_turns,
      },
      spent: {
        usage: {
          input: row.input_tokens,
          cachedInput: row.cached_input_tokens,
          cacheWrite: row.cache_write_input_tokens,
          output: row.output_tokens,
          reasoning: row.reasoning_tokens,
        },
        cost: row.cost,
        turns: row.turns,
        estimated: row.estimated,
        failed: row.failed,
      },
      exceeded: row.exceeded,
      byExpiry: row.by_expiry,
    },
  };
}
