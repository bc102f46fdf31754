import { int64 } from '@writ/store';
import type { TenantCaps } from '../../domain/catalog/catalog.ts';
import {
  type Amount,
  type Caps,
  DIMENSIONS,
  minus,
  NOTHING,
  plus,
} from '../../domain/ledger/amount.ts';
import { type Balance, type Change, emptyBalance, LEVELS } from '../../domain/ledger/balance.ts';
import { termsOf } from '../../domain/ledger/cap-slices.ts';
import { ACCOUNT_LIMIT } from '../../domain/ledger/reduce.ts';
import { type LevelCaps, levelCaps, selectSlice, sumOthers, toBalance } from '../balance-rows.ts';
import { isTenantLevel, tenantCaps } from '../balances.ts';
import {
  afterSlices,
  capsIds,
  isShared,
  type LevelsKey,
  rowIds,
  SHARED_LEVELS,
  type SharedLevel,
  sliceIds,
} from '../level-ids.ts';
import type { MeterTransaction } from '../meter-store.ts';
import { readEscrows } from './divide-caps.ts';
import { AllSlicesRequired, type SliceAccess } from './slice-access.ts';

/** Maximum amount of one slice, chosen so that the sum of all slices stays within the maximum of a level. */
const SLICE_LIMIT = ACCOUNT_LIMIT / 64n;

/** The levels of an agent as seen by a transaction that books only to its own slice. */
export interface OwnSlice {
  /**
   * In level order. A shared level contains the bookings of the slice, with the grant of the slice in place of the cap.
   */
  readonly levels: readonly Balance[];
  /** The caps of the shared levels that have caps. */
  readonly caps: ReadonlyMap<SharedLevel, LevelCaps>;
  /** Whether a settlement can reach a threshold of a level. */
  readonly isWatched: boolean;
}

/**
 * Reads the slice of the run.
 * @throws AllSlicesRequired when a level has no grant under the caps in effect
 */
export async function readOwnSlice(
  trx: MeterTransaction,
  key: LevelsKey,
  access: SliceAccess,
  catalog: TenantCaps,
): Promise<OwnSlice> {
  const ids = sliceIds(key, access.slice);
  const levelIds = rowIds(key);
  const capRows = capsIds(key.tenant);
  const [{ rows }, escrows] = await Promise.all([
    selectSlice(trx, {
      ...ids,
      session_caps: levelIds.session,
      day_caps: capRows.tenant_day,
      month_caps: capRows.tenant_month,
    }),
    readEscrows(trx, key, access.slice),
  ]);
  const tenant = tenantCaps(trx, key.tenant, rows, catalog);
  const session = rows.find(({ id }) => id === levelIds.session);
  const caps = new Map<SharedLevel, LevelCaps>();
  let isWatched = false;
  const grantOf = (level: SharedLevel): Caps => {
    const own = isTenantLevel(level) ? tenant[level] : session && levelCaps(session);
    const terms = termsOf(own?.caps ?? {}, access.percents);
    const escrow = escrows.get(levelIds[level]);
    if ((escrow?.terms ?? '') !== terms) throw new AllSlicesRequired();
    if (own === undefined || escrow === undefined) return {};
    const grant = escrow.grants.get(access.slice);
    if (grant === undefined) throw new AllSlicesRequired();
    caps.set(level, own);
    isWatched ||= escrow.isWatched;
    return Object.fromEntries(
      DIMENSIONS.filter((name) => own.caps[name] !== undefined).map((name) => [name, grant[name]]),
    );
  };
  const levels = LEVELS.map((level) => {
    const row = rows.find(({ id }) => id === ids[level]);
    const own = isShared(level) ? { caps: grantOf(level), capsSetBy: undefined } : undefined;
    return row === undefined ? { ...emptyBalance(level, {}), ...own } : toBalance(level, row, own);
  });
  return { levels, caps, isWatched };
}

/**
 * Requires that a booking stays within the grants of its slice and cannot reach a threshold.
 * @throws AllSlicesRequired
 */
export function requireWithinGrants(
  { caps, isWatched }: OwnSlice,
  after: readonly Balance[],
  { used }: Change,
): void {
  if (caps.size > 0 && isWatched && DIMENSIONS.some((name) => used[name] > 0n)) {
    throw new AllSlicesRequired();
  }
  for (const balance of after) {
    if (!isShared(balance.level)) continue;
    const booked = plus(balance.used, balance.reserved);
    for (const name of DIMENSIONS) {
      if (booked[name] > (balance.caps[name] ?? SLICE_LIMIT)) throw new AllSlicesRequired();
    }
  }
}

/** A booking in a slice. */
export interface SliceBooking {
  readonly own: OwnSlice;
  readonly after: readonly Balance[];
  readonly change: Change;
}

/**
 * The levels of an agent before and after a booking in its slice. A shared level without caps is absent; if the booking
 * is a reservation, all shared levels are absent.
 */
export interface SeenLevels {
  readonly before: readonly Balance[];
  readonly after: readonly Balance[];
}

/**
 * Reads the committed settlements of the other slices, so that a response can report how close each cap is (EM-5). Only
 * the settled amounts of shared levels are set.
 */
export async function seenLevels(
  trx: MeterTransaction,
  key: LevelsKey,
  { slice }: SliceAccess,
  { own, after, change }: SliceBooking,
): Promise<SeenLevels> {
  const levelIds = rowIds(key);
  const ids = sliceIds(key, slice);
  // Responses to reservations do not report shared levels.
  const isReservation = DIMENSIONS.some((name) => change.reserved[name] > 0n);
  const capped = isReservation ? [] : SHARED_LEVELS.filter((level) => own.caps.has(level));
  const others = await Promise.all(
    capped.map(async (level): Promise<Amount> => {
      const id = levelIds[level];
      const { rows } = await sumOthers(trx, { level: id, after: afterSlices(id), own: ids[level] });
      const { tokens, cost, turns } = rows[0] ?? {};
      if (tokens === undefined || tokens === null) return NOTHING;
      return { tokens: int64(tokens), cost: int64(cost), turns: int64(turns) };
    }),
  );
  const shared = capped.map((level, index): Balance => {
    const sliceBalance = after.find((balance) => balance.level === level);
    const used = plus(sliceBalance?.used ?? NOTHING, others[index] ?? NOTHING);
    return { ...emptyBalance(level, {}), ...own.caps.get(level), used };
  });
  const beforeChange = shared.map((balance) => ({
    ...balance,
    used: minus(balance.used, change.used),
  }));
  const notShared = (levels: readonly Balance[]) => levels.filter(({ level }) => !isShared(level));
  return {
    before: [...notShared(own.levels), ...beforeChange],
    after: [...notShared(after), ...shared],
  };
}
