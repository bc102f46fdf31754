import { RowCache } from '@writ/store';
import type { Selectable } from 'kysely';
import type { TenantCaps } from '../domain/catalog/catalog.ts';
import { type Caps, DIMENSIONS, lowerCaps } from '../domain/ledger/amount.ts';
import {
  type Balance,
  type Change,
  emptyBalance,
  LEVELS,
  type Level,
} from '../domain/ledger/balance.ts';
import {
  addHoldToAll,
  addToAll,
  addToOne,
  capColumns,
  capsIds,
  heldColumns,
  holdsOnly,
  insertLevels,
  type LevelCaps,
  type LevelsKey,
  levelCaps,
  missingOf,
  rowIds,
  selectLevels,
  sumColumns,
  toBalance,
  updateCaps,
} from './balance-rows.ts';
import type { MeterReader, MeterTransaction } from './meter-store.ts';
import type { BalanceTable } from './schema.ts';

/** By row id. Rows of tenant levels contain no caps, which the catalog defines. */
const cache = new RowCache<Balance>();

/** By row id of `capsIds`. */
const capsCache = new RowCache<LevelCaps | 'none'>();

/**
 * Returns the accounts of all levels of an agent in level order. A level without bookings is empty.
 * @param catalog the tenant's caps of the catalog, which apply unless others were set at run time
 */
export async function readLevels(
  db: MeterReader,
  key: LevelsKey,
  catalog: TenantCaps,
): Promise<Balance[]> {
  const ids = rowIds(key);
  const caps = capsIds(key.tenant);
  const known = LEVELS.map((level) => cache.get(db, ids[level]));
  const isKnown =
    !known.includes(undefined) &&
    TENANT_LEVELS.every((level) => capsCache.get(db, caps[level]) !== undefined);
  const wanted = { ...ids, day_caps: caps.tenant_day, month_caps: caps.tenant_month };
  const rows = isKnown ? [] : (await selectLevels(db, wanted)).rows;
  const tenant = tenantCaps(db, key.tenant, rows, catalog);
  return LEVELS.map((level, index) => {
    const own = isTenantLevel(level) ? tenant[level] : undefined;
    const balance = known[index];
    if (balance !== undefined) return own === undefined ? balance : { ...balance, ...own };
    const row = rows.find(({ id }) => id === ids[level]);
    if (row === undefined) return { ...emptyBalance(level, {}), ...own };
    const read = toBalance(level, row, own);
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
  catalog: TenantCaps,
): Promise<Balance[]> {
  const ids = rowIds({ tenant, runId: '', instance: '', sessionId: sessionId ?? '', day });
  const levels: Level[] = [
    ...(sessionId === undefined ? [] : ['session' as const]),
    ...TENANT_LEVELS,
  ];
  const rows = await db
    .selectFrom('balances')
    .selectAll()
    .where('id', 'in', [...levels.map((level) => ids[level]), ...Object.values(capsIds(tenant))])
    .execute();
  const caps = tenantCaps(db, tenant, rows, catalog);
  return levels.map((level) => {
    const row = rows.find(({ id }) => id === ids[level]);
    const own = isTenantLevel(level) ? caps[level] : undefined;
    return row === undefined ? { ...emptyBalance(level, {}), ...own } : toBalance(level, row, own);
  });
}

const TENANT_LEVELS = ['tenant_day', 'tenant_month'] as const;
type TenantLevel = (typeof TENANT_LEVELS)[number];

function isTenantLevel(level: Level): level is TenantLevel {
  return level === 'tenant_day' || level === 'tenant_month';
}

/** The caps of a tenant: those set at run time, else those of the catalog. */
function tenantCaps(
  db: MeterReader,
  tenant: string,
  rows: readonly Selectable<BalanceTable>[],
  { day, month }: TenantCaps,
): Record<TenantLevel, LevelCaps> {
  const ids = capsIds(tenant);
  const capsOf = (level: TenantLevel, ofCatalog: Caps): LevelCaps => {
    const id = ids[level];
    const row = rows.find((each) => each.id === id);
    const set = capsCache.get(db, id) ?? (row?.caps_set_by == null ? 'none' : levelCaps(row));
    capsCache.set(db, id, set);
    return set === 'none' ? { caps: ofCatalog, capsSetBy: undefined } : set;
  };
  return { tenant_day: capsOf('tenant_day', day), tenant_month: capsOf('tenant_month', month) };
}

/** The caps of one level that are set at run time. */
export interface SetCaps {
  readonly tenant: string;
  readonly level: 'run' | 'session' | TenantLevel;
  /** Empty for the other levels. */
  readonly sessionId: string;
  /** Empty for the other levels. */
  readonly runId: string;
  /** Undefined removes caps that were set. */
  readonly caps: Caps | undefined;
  readonly setBy: string;
}

/** Sets or removes the caps of a session or a tenant at run time. */
export async function setLevelCaps(
  trx: MeterTransaction,
  { tenant, level, sessionId, caps, setBy }: SetCaps & { readonly level: 'session' | TenantLevel },
): Promise<void> {
  const session = rowIds({ tenant, runId: '', instance: '', sessionId, day: '' }).session;
  const id = level === 'session' ? session : capsIds(tenant)[level];
  const columns = {
    ...capColumns(caps ?? {}),
    caps_set_by: caps === undefined ? null : setBy,
  };
  await trx
    .insertInto('balances')
    .values({ id, ...columns })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(columns))
    .execute();
  cache.delete(trx, id);
  capsCache.delete(trx, id);
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
 * Inserts the missing levels of a new tab, in one statement, sets the caps of an existing run and lowers those of an
 * existing session.
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
    } else {
      const next = level === 'session' ? loweredCaps(balance, opened.session) : opened[level];
      after.push(await setCaps(trx, ids[level], balance, next));
    }
  }
  return after;
}

/**
 * The caps of a session that a further run sets: never above those that an earlier one set, and none while others
 * were set at run time (EM-3).
 */
function loweredCaps({ caps, capsSetBy }: Balance, opened: Caps | undefined): Caps | undefined {
  if (opened === undefined || capsSetBy !== undefined) return undefined;
  return lowerCaps(caps, opened);
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

/** Removes the account of a level from the cache. */
export function forgetBalance(trx: MeterTransaction, id: string): void {
  cache.delete(trx, id);
}

/** Removes the levels of a closed tab from the cache. */
export function forgetLevels(trx: MeterTransaction, key: LevelsKey): void {
  const { agent, run } = rowIds(key);
  cache.delete(trx, agent);
  cache.delete(trx, run);
}
