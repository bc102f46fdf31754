import { prepareQuery, RowCache } from '@writ/store';
import type { Selectable } from 'kysely';
import type { AgentKey } from '../domain/agent-key.ts';
import type { TenantCaps } from '../domain/catalog/catalog.ts';
import { type Caps, DIMENSIONS } from '../domain/ledger/amount.ts';
import {
  type Balance,
  type Change,
  emptyBalance,
  LEVELS,
  type Level,
  monthOf,
  NO_CHANGE,
} from '../domain/ledger/balance.ts';
import type { MeterReader, MeterTransaction } from './meter-store.ts';
import type { BalanceTable } from './schema.ts';

/** Key of all levels: an agent of a session on a UTC day. */
export interface LevelsKey extends AgentKey {
  readonly sessionId: string;
  readonly day: string;
}

/** By row id. Rows of tenant levels contain no caps, which the catalog defines. */
const cache = new RowCache<Balance>();

/**
 * Returns the accounts of all levels of an agent in level order. A level without bookings is empty.
 */
export async function readLevels(
  db: MeterReader,
  key: LevelsKey,
  tenant: TenantCaps,
): Promise<Balance[]> {
  const ids = rowIds(key);
  const known = LEVELS.map((level) => cache.get(db, ids[level]));
  const rows = known.includes(undefined) ? (await selectLevels(db, ids)).rows : [];
  return LEVELS.map((level, index) => {
    const caps = capsOf(level, tenant);
    const balance = known[index];
    if (balance !== undefined) return caps === undefined ? balance : { ...balance, caps };
    const row = rows.find(({ id }) => id === ids[level]);
    if (row === undefined) return emptyBalance(level, caps ?? {});
    const read = toBalance(level, row, caps);
    cache.set(db, row.id, read);
    return read;
  });
}

/** A tenant's session, or none, on a UTC day. */
export interface ScopeKey {
  readonly tenant: string;
  /** Undefined for the levels of the tenant only. */
  readonly sessionId: string | undefined;
  readonly day: string;
}

/** Returns the accounts of a session, if one is named, then those of the tenant's day and month. */
export async function readScopeLevels(
  db: MeterReader,
  { tenant, sessionId, day }: ScopeKey,
  caps: TenantCaps,
): Promise<Balance[]> {
  const ids = rowIds({ tenant, runId: '', agentInstance: '', sessionId: sessionId ?? '', day });
  const levels: Level[] = [
    ...(sessionId === undefined ? [] : (['session'] as const)),
    'tenant_day',
    'tenant_month',
  ];
  const wanted = levels.map((level) => ids[level]);
  const rows = await db.selectFrom('balances').selectAll().where('id', 'in', wanted).execute();
  return levels.map((level) => {
    const row = rows.find(({ id }) => id === ids[level]);
    const own = capsOf(level, caps);
    return row === undefined ? emptyBalance(level, own ?? {}) : toBalance(level, row, own);
  });
}

function capsOf(level: Level, { day, month }: TenantCaps): Caps | undefined {
  if (level === 'tenant_day') return day;
  return level === 'tenant_month' ? month : undefined;
}

/**
 * Adds one change to every level of an agent.
 * @param after all levels after the change
 */
export async function addToLevels(
  trx: MeterTransaction,
  key: LevelsKey,
  change: Change,
  after: readonly Balance[],
): Promise<void> {
  const ids = rowIds(key);
  const all = Object.values(ids);
  const { numAffectedRows } = holdsOnly(change)
    ? await addHoldToAll(trx, { ...ids, ...heldColumns(change) })
    : await addToAll(trx, { ...ids, ...sumColumns(change) });
  if (numAffectedRows === BigInt(all.length)) {
    for (const balance of after) cache.set(trx, ids[balance.level], balance);
    return;
  }
  for (const id of all) cache.delete(trx, id);
  // First booking of a day or month: insert the missing rows and apply the change to them.
  const missing = await missingOf(trx, all);
  await trx
    .insertInto('balances')
    .values(missing.map((id) => ({ id, ...capColumns({}) })))
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute();
  const sums = sumColumns(change);
  for (const id of missing) await addToOne(trx, { id, ...sums });
}

/** Caps of the levels that a tab opens; undefined leaves those of an existing level unchanged. */
export interface OpenedCaps {
  readonly agent: Caps;
  readonly run: Caps | undefined;
  readonly session: Caps | undefined;
}

/**
 * Inserts the missing levels of a new tab, in one statement, and updates the caps of an existing run and session.
 * @param before all levels, as read in this transaction
 * @returns all levels after that
 */
export async function openLevels(
  trx: MeterTransaction,
  key: LevelsKey,
  before: readonly Balance[],
  opened: OpenedCaps,
): Promise<Balance[]> {
  const ids = rowIds(key);
  const caps = { agent: opened.agent, run: opened.run ?? {}, session: opened.session ?? {} };
  const { rows } = await insertLevels(trx, {
    agent: ids.agent,
    agent_tokens: caps.agent.tokens ?? null,
    agent_cost: caps.agent.cost ?? null,
    agent_turns: caps.agent.turns ?? null,
    run: ids.run,
    run_tokens: caps.run.tokens ?? null,
    run_cost: caps.run.cost ?? null,
    run_turns: caps.run.turns ?? null,
    session: ids.session,
    session_tokens: caps.session.tokens ?? null,
    session_cost: caps.session.cost ?? null,
    session_turns: caps.session.turns ?? null,
  });
  const inserted = new Set(rows.map(({ id }) => id));
  const after: Balance[] = [];
  for (const balance of before) {
    const { level } = balance;
    if (level === 'tenant_day' || level === 'tenant_month') after.push(balance);
    else if (inserted.has(ids[level])) {
      const empty = emptyBalance(level, caps[level]);
      cache.set(trx, ids[level], empty);
      after.push(empty);
    } else after.push(await setCaps(trx, ids[level], balance, opened[level]));
  }
  return after;
}

/** Sets the caps of an existing level, if they are given and differ. */
async function setCaps(
  trx: MeterTransaction,
  id: string,
  before: Balance,
  caps: Caps | undefined,
): Promise<Balance> {
  if (caps === undefined || isSameCaps(before.caps, caps)) return before;
  await updateCaps(trx, { id, ...capColumns(caps) });
  const after = { ...before, caps };
  cache.set(trx, id, after);
  return after;
}

function isSameCaps(a: Caps, b: Caps): boolean {
  return DIMENSIONS.every((name) => a[name] === b[name]);
}

/** Removes the levels of a closed tab from the cache. */
export function forgetLevels(trx: MeterTransaction, key: LevelsKey): void {
  const { agent, run } = rowIds(key);
  cache.delete(trx, agent);
  cache.delete(trx, run);
}

function rowIds({ tenant, runId, agentInstance, sessionId, day }: LevelsKey) {
  return {
    agent: `agent:${tenant}/${runId}/${agentInstance}`,
    run: `run:${tenant}/${runId}`,
    session: `session:${tenant}/${sessionId}`,
    tenant_day: `day:${tenant}/${day}`,
    tenant_month: `month:${tenant}/${monthOf(day)}`,
  } satisfies Record<Level, string>;
}

type RowIds = ReturnType<typeof rowIds>;
type Sums = ReturnType<typeof sumColumns>;

/** Whether a change only affects holds: half of all changes, with a fifth of the columns. */
function holdsOnly({ used, debt, usage, estimatedTurns, failedCalls }: Change): boolean {
  const { used: none, usage: noUsage } = NO_CHANGE;
  const isUnused = used === none && debt === none && usage === noUsage;
  return isUnused && estimatedTurns === 0n && failedCalls === 0n;
}

function heldColumns({ reserved }: Change) {
  return {
    reserved_tokens: reserved.tokens,
    reserved_cost: reserved.cost,
    reserved_turns: reserved.turns,
  };
}

function sumColumns(change: Change) {
  return {
    used_tokens: change.used.tokens,
    used_cost: change.used.cost,
    used_turns: change.used.turns,
    ...heldColumns(change),
    debt_tokens: change.debt.tokens,
    debt_cost: change.debt.cost,
    debt_turns: change.debt.turns,
    input_tokens: change.usage.input,
    cached_input_tokens: change.usage.cachedInput,
    output_tokens: change.usage.output,
    reasoning_tokens: change.usage.reasoning,
    estimated_turns: change.estimatedTurns,
    failed_calls: change.failedCalls,
  };
}

interface OpenedLevels {
  readonly agent: string;
  readonly agent_tokens: bigint | null;
  readonly agent_cost: bigint | null;
  readonly agent_turns: bigint | null;
  readonly run: string;
  readonly run_tokens: bigint | null;
  readonly run_cost: bigint | null;
  readonly run_turns: bigint | null;
  readonly session: string;
  readonly session_tokens: bigint | null;
  readonly session_cost: bigint | null;
  readonly session_turns: bigint | null;
}

const insertLevels = prepareQuery((db: MeterReader, row: OpenedLevels) =>
  db
    .insertInto('balances')
    .values([
      {
        id: row.agent,
        cap_tokens: row.agent_tokens,
        cap_cost: row.agent_cost,
        cap_turns: row.agent_turns,
      },
      { id: row.run, cap_tokens: row.run_tokens, cap_cost: row.run_cost, cap_turns: row.run_turns },
      {
        id: row.session,
        cap_tokens: row.session_tokens,
        cap_cost: row.session_cost,
        cap_turns: row.session_turns,
      },
    ])
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id'),
);

const updateCaps = prepareQuery(
  (db: MeterReader, row: Pick<BalanceTable, 'id' | 'cap_tokens' | 'cap_cost' | 'cap_turns'>) =>
    db
      .updateTable('balances')
      .set({ cap_tokens: row.cap_tokens, cap_cost: row.cap_cost, cap_turns: row.cap_turns })
      .where('id', '=', row.id),
);

const selectLevels = prepareQuery((db: MeterReader, ids: RowIds) =>
  db.selectFrom('balances').selectAll().where('id', 'in', inOrder(ids)),
);

const addToAll = prepareQuery((db: MeterReader, values: RowIds & Sums) =>
  adding(db, values).where('id', 'in', inOrder(values)),
);

const addHoldToAll = prepareQuery(
  (db: MeterReader, values: RowIds & ReturnType<typeof heldColumns>) =>
    db
      .updateTable('balances')
      .set((column) => ({
        reserved_tokens: column('reserved_tokens', '+', values.reserved_tokens),
        reserved_cost: column('reserved_cost', '+', values.reserved_cost),
        reserved_turns: column('reserved_turns', '+', values.reserved_turns),
      }))
      .where('id', 'in', inOrder(values)),
);

const addToOne = prepareQuery((db: MeterReader, values: Sums & { readonly id: string }) =>
  adding(db, values).where('id', '=', values.id),
);

function inOrder(ids: RowIds): string[] {
  return [ids.agent, ids.run, ids.session, ids.tenant_day, ids.tenant_month];
}

function adding(db: MeterReader, sums: Sums) {
  return db.updateTable('balances').set((column) => ({
    used_tokens: column('used_tokens', '+', sums.used_tokens),
    used_cost: column('used_cost', '+', sums.used_cost),
    used_turns: column('used_turns', '+', sums.used_turns),
    reserved_tokens: column('reserved_tokens', '+', sums.reserved_tokens),
    reserved_cost: column('reserved_cost', '+', sums.reserved_cost),
    reserved_turns: column('reserved_turns', '+', sums.reserved_turns),
    debt_tokens: column('debt_tokens', '+', sums.debt_tokens),
    debt_cost: column('debt_cost', '+', sums.debt_cost),
    debt_turns: column('debt_turns', '+', sums.debt_turns),
    input_tokens: column('input_tokens', '+', sums.input_tokens),
    cached_input_tokens: column('cached_input_tokens', '+', sums.cached_input_tokens),
    output_tokens: column('output_tokens', '+', sums.output_tokens),
    reasoning_tokens: column('reasoning_tokens', '+', sums.reasoning_tokens),
    estimated_turns: column('estimated_turns', '+', sums.estimated_turns),
    failed_calls: column('failed_calls', '+', sums.failed_calls),
  }));
}

async function missingOf(trx: MeterTransaction, ids: readonly string[]): Promise<string[]> {
  const rows = await trx.selectFrom('balances').select('id').where('id', 'in', ids).execute();
  const existing = new Set(rows.map(({ id }) => id));
  return ids.filter((id) => !existing.has(id));
}

function capColumns(caps: Caps) {
  return {
    cap_tokens: caps.tokens ?? null,
    cap_cost: caps.cost ?? null,
    cap_turns: caps.turns ?? null,
  };
}

function toBalance(level: Level, row: Selectable<BalanceTable>, caps?: Caps): Balance {
  return {
    level,
    caps: caps ?? {
      ...(row.cap_tokens === null ? {} : { tokens: row.cap_tokens }),
      ...(row.cap_cost === null ? {} : { cost: row.cap_cost }),
      ...(row.cap_turns === null ? {} : { turns: row.cap_turns }),
    },
    used: { tokens: row.used_tokens, cost: row.used_cost, turns: row.used_turns },
    reserved: {
      tokens: row.reserved_tokens,
      cost: row.reserved_cost,
      turns: row.reserved_turns,
    },
    debt: { tokens: row.debt_tokens, cost: row.debt_cost, turns: row.debt_turns },
    usage: {
      input: row.input_tokens,
      cachedInput: row.cached_input_tokens,
      output: row.output_tokens,
      reasoning: row.reasoning_tokens,
    },
    estimatedTurns: row.estimated_turns,
    failedCalls: row.failed_calls,
  };
}
