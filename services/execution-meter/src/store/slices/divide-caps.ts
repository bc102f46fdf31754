import { prepareQuery } from '@writ/store';
import type { Selectable } from 'kysely';
import { type Amount, DIMENSIONS, NOTHING, plus } from '../../domain/ledger/amount.ts';
import type { Balance, Change } from '../../domain/ledger/balance.ts';
import { divide, type Slice, termsOf } from '../../domain/ledger/cap-slices.ts';
import { toBalance } from '../balance-rows.ts';
import { isOfLevel, type LevelsKey, rowIds, SHARED_LEVELS, sliceOfRow } from '../level-ids.ts';
import type { MeterReader, MeterTransaction } from '../meter-store.ts';
import type { BalanceTable } from '../schema.ts';
import type { SliceAccess } from './slice-access.ts';

/** The grants of a level; valid only while `terms` match the caps and thresholds in effect. */
interface Escrow {
  readonly terms: string;
  readonly isWatched: boolean;
  /** By slice. */
  readonly grants: ReadonlyMap<number, Amount>;
}

/**
 * Reads the grants of the shared levels, for all slices or for one, and returns them by level id. A level without a row
 * in `escrows` is absent.
 */
export async function readEscrows(
  db: MeterReader,
  key: LevelsKey,
  slice?: number,
): Promise<ReadonlyMap<string, Escrow>> {
  const { session, tenant_day: day, tenant_month: month } = rowIds(key);
  const ids = { session, day, month };
  const { rows } =
    slice === undefined
      ? await selectAllGrants(db, ids)
      : await selectGrants(db, { ...ids, slice });
  const escrows = new Map<string, Escrow & { readonly grants: Map<number, Amount> }>();
  for (const { id, terms, is_watched, slice: index, tokens, cost, turns } of rows) {
    const known = escrows.get(id) ?? { terms, isWatched: is_watched, grants: new Map() };
    escrows.set(id, known);
    if (index === null || tokens === null || cost === null || turns === null) continue;
    known.grants.set(index, { tokens, cost, turns });
  }
  return escrows;
}

interface EscrowIds {
  readonly session: string;
  readonly day: string;
  readonly month: string;
}

const COLUMNS = [
  'escrows.level as id',
  'terms',
  'is_watched',
  'slice',
  'tokens',
  'cost',
  'turns',
] as const;

const selectAllGrants = prepareQuery((db: MeterReader, ids: EscrowIds) =>
  db
    .selectFrom('escrows')
    .leftJoin('grants', 'grants.level', 'escrows.level')
    .select(COLUMNS)
    .where('escrows.level', 'in', [ids.session, ids.day, ids.month]),
);

const selectGrants = prepareQuery((db: MeterReader, ids: EscrowIds & { readonly slice: number }) =>
  db
    .selectFrom('escrows')
    .leftJoin('grants', (join) =>
      join.onRef('grants.level', '=', 'escrows.level').on('slice', '=', ids.slice),
    )
    .select(COLUMNS)
    .where('escrows.level', 'in', [ids.session, ids.day, ids.month]),
);

/** State of the shared levels before and after a booking that has access to all slices. */
export interface ReadSlices {
  /** The rows of all slices before the change. */
  readonly rows: readonly Selectable<BalanceTable>[];
  readonly escrows: ReadonlyMap<string, Escrow>;
  readonly change: Change;
  /** All levels after the change. */
  readonly after: readonly Balance[];
}

/**
 * Divides the caps of the shared levels among their slices after a change, so that the next transactions of the own
 * slice need not read other slices. No other transaction of the tenant may be open.
 */
export async function divideLevels(
  trx: MeterTransaction,
  key: LevelsKey,
  access: SliceAccess,
  read: ReadSlices,
): Promise<void> {
  const ids = rowIds(key);
  for (const level of SHARED_LEVELS) {
    const balance = read.after.find((each) => each.level === level);
    if (balance !== undefined) await divideLevel(trx, ids[level], { balance, access, read });
  }
}

interface LevelToDivide {
  /** The account of the level after the change. */
  readonly balance: Balance;
  readonly access: SliceAccess;
  readonly read: ReadSlices;
}

async function divideLevel(
  trx: MeterTransaction,
  id: string,
  { balance, access, read }: LevelToDivide,
): Promise<void> {
  const { caps, used } = balance;
  const { slice: own, percents } = access;
  const before = read.escrows.get(id);
  const terms = termsOf(caps, percents);
  const granted = before?.terms === terms ? before.grants : new Map<number, Amount>();
  const slices = slicesOf(id, own, read, granted);
  const wanted = read.change.reserved;
  const division =
    terms === '' ? undefined : divide({ caps, percents, used, slices }, { index: own, wanted });
  if (division === undefined) {
    if (before !== undefined) await removeEscrow(trx, id);
    return;
  }
  const { isWatched, grants } = division;
  if (before !== undefined && before.terms !== terms) await removeEscrow(trx, id);
  if (before?.terms !== terms || before.isWatched !== isWatched) {
    await saveEscrow(trx, id, terms, isWatched);
  }
  const changed = slices.flatMap(({ index }, position) => {
    const grant = grants[position] ?? NOTHING;
    const known = granted.get(index);
    // A grant is created only for the own slice. Other slices without a grant read all slices at their next booking and
    // get their grant then.
    if (known === undefined ? index !== own : isSame(known, grant)) return [];
    return [{ level: id, slice: index, ...grant }];
  });
  if (changed.length > 0) await saveGrants(trx, changed);
}

/** Returns the booked and granted amounts of each slice of a level after the change. */
function slicesOf(
  id: string,
  own: number,
  { rows, change }: ReadSlices,
  granted: ReadonlyMap<number, Amount>,
): readonly Slice[] {
  const booked = new Map<number, Amount>([[own, NOTHING]]);
  for (const index of granted.keys()) booked.set(index, NOTHING);
  for (const row of rows) {
    if (!isOfLevel(row.id, id)) continue;
    const { used, reserved } = toBalance('session', row);
    booked.set(sliceOfRow(row.id), plus(used, reserved));
  }
  booked.set(own, plus(booked.get(own) ?? NOTHING, plus(change.used, change.reserved)));
  return Array.from(booked, ([index, amount]) => ({
    index,
    booked: amount,
    granted: granted.get(index) ?? NOTHING,
  }));
}

function isSame(a: Amount, b: Amount): boolean {
  return DIMENSIONS.every((name) => a[name] === b[name]);
}

async function removeEscrow(trx: MeterTransaction, level: string): Promise<void> {
  await trx.deleteFrom('grants').where('level', '=', level).execute();
  await trx.deleteFrom('escrows').where('level', '=', level).execute();
}

async function saveEscrow(
  trx: MeterTransaction,
  level: string,
  terms: string,
  is_watched: boolean,
): Promise<void> {
  await trx
    .insertInto('escrows')
    .values({ level, terms, is_watched })
    .onConflict((conflict) => conflict.column('level').doUpdateSet({ terms, is_watched }))
    .execute();
}

async function saveGrants(
  trx: MeterTransaction,
  rows: readonly ({ readonly level: string; readonly slice: number } & Amount)[],
): Promise<void> {
  await trx
    .insertInto('grants')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['level', 'slice']).doUpdateSet((row) => ({
        tokens: row.ref('excluded.tokens'),
        cost: row.ref('excluded.cost'),
        turns: row.ref('excluded.turns'),
      })),
    )
    .execute();
}
