import { RowCache } from '@writ/store';
import type { Selectable } from 'kysely';
import type { TenantCaps } from '../domain/catalog/catalog.ts';
import type { Caps } from '../domain/ledger/amount.ts';
import {
  applyChange,
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
  heldColumns,
  holdsOnly,
  type LevelCaps,
  levelCaps,
  missingOf,
  selectLevels,
  sumColumns,
  toBalance,
} from './balance-rows.ts';
import {
  afterSlices,
  capsIds,
  isOfLevel,
  isShared,
  type LevelsKey,
  rowIds,
  sliceIds,
} from './level-ids.ts';
import type { MeterReader, MeterTransaction } from './meter-store.ts';
import type { BalanceTable } from './schema.ts';
import type { SliceAccess } from './slices/slice-access.ts';

/**
 * Accounts by level id, each with the sums of all slices. See {@link tenantCaps} for the caps of tenant levels, which
 * are not read from this cache.
 */
const cache = new RowCache<Balance>();

/** Caps of tenant levels set at run time, by row id (`capsIds`); `none` if none are set. */
const capsCache = new RowCache<LevelCaps | 'none'>();

/**
 * Returns the accounts of all levels of an agent in level order, each with the sums of all slices. A level without
 * bookings has an empty account.
 * @param catalog caps of the tenant from the catalog; caps that were set at run time replace them
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
  const rows = isKnown ? [] : await selectLevels(db, key);
  const tenant = tenantCaps(db, key.tenant, rows, catalog);
  return LEVELS.map((level, index) => {
    const own = isTenantLevel(level) ? tenant[level] : undefined;
    const balance = known[index];
    if (balance !== undefined) return own === undefined ? balance : { ...balance, ...own };
    const { account, isStored } = accountOf(level, ids[level], rows, own);
    if (isStored) cache.set(db, ids[level], account);
    return account;
  });
}

/**
 * Reads the same accounts as {@link readLevels}, bypassing the cache, and the rows of all slices. Requires that no
 * other transaction of the tenant is open.
 */
export async function readAllSlices(
  trx: MeterTransaction,
  key: LevelsKey,
  catalog: TenantCaps,
): Promise<{
  readonly levels: readonly Balance[];
  readonly rows: readonly Selectable<BalanceTable>[];
}> {
  const ids = rowIds(key);
  const rows = await selectLevels(trx, key);
  const tenant = tenantCaps(trx, key.tenant, rows, catalog);
  const levels = LEVELS.map((level) => {
    const own = isTenantLevel(level) ? tenant[level] : undefined;
    return accountOf(level, ids[level], rows, own).account;
  });
  return { levels, rows };
}

/**
 * Returns the account of a level: the sums of its rows, with `caps` if given, else with the stored caps of the level.
 */
function accountOf(
  level: Level,
  id: string,
  rows: readonly Selectable<BalanceTable>[],
  caps: LevelCaps | undefined,
): { readonly account: Balance; readonly isStored: boolean } {
  const ofLevel = rows.filter((row) => isOfLevel(row.id, id));
  const first = ofLevel.find((row) => row.id === id);
  const own = first && toBalance(level, first, caps);
  let account: Balance = own ?? { ...emptyBalance(level, {}), ...caps };
  for (const row of ofLevel) {
    if (row !== first) account = applyChange(account, toBalance(level, row));
  }
  return { account, isStored: ofLevel.length > 0 };
}

/** A tenant on a UTC day, and optionally one of its sessions. */
export interface ScopeKey {
  readonly tenant: string;
  /** If undefined, only the levels of the tenant are read. */
  readonly sessionId: string | undefined;
  readonly day: string;
}

/**
 * Returns the account of the session, if `sessionId` is set, and the accounts of the tenant for `day` and for its
 * month.
 */
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
    .where((row) =>
      row.or([
        row('id', 'in', Object.values(capsIds(tenant))),
        ...levels.map((level) =>
          row.and([row('id', '>=', ids[level]), row('id', '<', afterSlices(ids[level]))]),
        ),
      ]),
    )
    .execute();
  const caps = tenantCaps(db, tenant, rows, catalog);
  return levels.map((level) => {
    const own = isTenantLevel(level) ? caps[level] : undefined;
    return accountOf(level, ids[level], rows, own).account;
  });
}

const TENANT_LEVELS = ['tenant_day', 'tenant_month'] as const;
/** One of the levels of a tenant. */
export type TenantLevel = (typeof TENANT_LEVELS)[number];

/** Whether a level is a tenant level. The caps of tenant levels are stored in separate rows. */
export function isTenantLevel(level: Level): level is TenantLevel {
  return level === 'tenant_day' || level === 'tenant_month';
}

/** Returns, for each tenant level, the caps that were set at run time, else the caps of the catalog. */
export function tenantCaps(
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
  /** Set only if `level` is `session`; otherwise empty. */
  readonly sessionId: string;
  /** Set only if `level` is `run`; otherwise empty. */
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

/** A change that is applied to every level of an agent. */
export interface LevelsChange {
  readonly change: Change;
  readonly access: SliceAccess;
  /** All levels after the change; shared levels are complete only if the transaction has read all slices. */
  readonly after: readonly Balance[];
}

/** Adds one change to every level of an agent, in the slice of the run. */
export async function addToLevels(
  trx: MeterTransaction,
  key: LevelsKey,
  { change, access, after }: LevelsChange,
): Promise<void> {
  const levelIds = rowIds(key);
  const ids = sliceIds(key, access.slice);
  const all = Object.values(ids);
  const { numAffectedRows } = holdsOnly(change)
    ? await addHoldToAll(trx, { ...ids, ...heldColumns(change) })
    : await addToAll(trx, { ...ids, ...sumColumns(change) });
  if (numAffectedRows === BigInt(all.length)) {
    for (const balance of after) {
      const id = levelIds[balance.level];
      if (access.reach === 'own' && isShared(balance.level)) cache.delete(trx, id);
      else cache.set(trx, id, balance);
    }
    return;
  }
  for (const id of Object.values(levelIds)) cache.delete(trx, id);
  // First booking of a day or month in a slice: insert the missing rows and apply the change to them.
  const missing = await missingOf(trx, all);
  await trx
    .insertInto('balances')
    .values(missing.map((id) => ({ id, ...capColumns({}) })))
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute();
  const sums = sumColumns(change);
  for (const id of missing) await addToOne(trx, { id, ...sums });
}

/** Caches the account of a level that this transaction has just written. */
export function cacheBalance(trx: MeterTransaction, id: string, balance: Balance): void {
  cache.set(trx, id, balance);
}

/** Removes the account of a level from the cache. */
export function forgetBalance(trx: MeterTransaction, id: string): void {
  cache.delete(trx, id);
}

/** Removes the accounts of the agent and the run of a closed tab from the cache. */
export function forgetLevels(trx: MeterTransaction, key: LevelsKey): void {
  const { agent, run } = rowIds(key);
  cache.delete(trx, agent);
  cache.delete(trx, run);
}
