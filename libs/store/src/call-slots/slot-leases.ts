import type { Kysely, Transaction } from 'kysely';
import { column, type RowOf, type TableOf, table } from '../schema/table.ts';

/**
 * The number of slots that each replica holds, by slot name, and the number of calls that wait for a slot at that
 * replica.
 */
export const slotLeasesTable = table('slot_leases', {
  columns: {
    name: column.text(),
    /** Empty in the row that holds the virtual time. */
    replica: column.text(),
    leased: column.integer(),
    waiting: column.integer(),
    /** Sum of the weights of the waiting calls; 0 if no call or only BACKGROUND calls wait. */
    weight: column.integer(),
    /**
     * Finish tag (start-time fair queueing) of the last weighted slot assignment to the replica; in the row without a
     * replica, the virtual time.
     */
    finish: column.real(),
  },
  primaryKey: ['name', 'replica'],
});

type SlotLease = RowOf<typeof slotLeasesTable>;

/** The database of a service whose replicas share slots. */
export interface SlotLeasesDatabase {
  slot_leases: TableOf<typeof slotLeasesTable>;
}

/** The demand of a replica for slots. */
export interface SlotDemand {
  readonly name: string;
  readonly replica: string;
  readonly limit: number;
  /** Slots in use at the replica, which it keeps. */
  readonly inUse: number;
  /** Held slots that it returns. */
  readonly returned: number;
  readonly waiting: number;
  readonly weight: number;
  /** Dead replicas, whose slots are free. */
  readonly dead: ReadonlySet<string>;
  /** Whether the replica is shutting down, so that its row can be deleted. */
  readonly leaves?: boolean;
}

/** The allocation of slots as seen by a replica. */
export interface SlotAllocation {
  readonly leased: number;
  /** Waiting calls of this replica as recorded in the store. */
  readonly waiting: number;
  /** Waiting calls at other replicas. */
  readonly waitingAtOthers: number;
  readonly leasedByOthers: number;
  /** Free slots. */
  readonly free: number;
  /** Other replicas that hold or request slots. */
  readonly others: readonly string[];
  /**
   * Whether this replica had a row when the leases were read; always true in a result of assignSlots, which may have
   * deleted the row.
   */
  readonly known: boolean;
}

/** Virtual time of one slot at weight 1; a multiple of every weight that a single call can have. */
const SCALE = 8;

/**
 * Frees the slots that a replica returns, records its demand and assigns free slots to replicas in the ratio of the
 * weights of their waiting calls (start-time fair queueing, SUP-3), as a single queue across all replicas would.
 * BACKGROUND is served only when no other call waits anywhere.
 * @returns the allocation, and whether to notify other replicas of a grant or a new demand
 */
export async function assignSlots<DB extends SlotLeasesDatabase>(
  transaction: Transaction<DB>,
  demand: SlotDemand,
): Promise<{ readonly allocation: SlotAllocation; readonly notify: boolean }> {
  const trx = transaction as unknown as Transaction<SlotLeasesDatabase>;
  const { name, replica, limit, inUse, returned, waiting, weight, dead, leaves } = demand;
  const rows = await readLeases(trx, name);
  const clock = rows.find((row) => row.replica === '');
  const before = rows.find((row) => row.replica === replica);
  const mine: SlotLease = {
    name,
    replica,
    leased: Math.max(inUse, (before?.leased ?? 0) - returned),
    waiting,
    weight,
    finish: before?.finish ?? 0,
  };
  const others = rows.filter(
    (row) => row.replica !== '' && row.replica !== replica && !dead.has(row.replica),
  );
  const shares = [mine, ...others.map((row) => ({ ...row }))];
  let now = clock?.finish ?? 0;
  let free = limit - sum(shares.map(({ leased }) => leased));
  for (; free > 0; free -= 1) {
    const next = nextOf(shares, now);
    if (next === undefined) break;
    if (next.weight > 0) {
      now = Math.max(now, next.finish);
      next.finish = now + SCALE / next.weight;
    }
    next.leased += 1;
    next.waiting -= 1;
  }
  // No replica waits or holds a slot, so all start again at the same virtual time.
  if (shares.every(isIdle)) now = Math.max(now, ...shares.map(({ finish }) => finish));
  const granted = shares.filter(
    (share, index) => index > 0 && share.leased !== others[index - 1]?.leased,
  );
  const isFinished = (share: SlotLease): boolean =>
    isIdle(share) && (share.finish <= now || (share === mine && leaves === true));
  const removed = new Set(shares.filter(isFinished).map((share) => share.replica));
  for (const row of rows) {
    const { replica: owner } = row;
    if (dead.has(owner) || removed.has(owner)) await deleteLease(trx, name, owner);
  }
  await upsert(trx, [
    ...[mine, ...granted].filter((share) => !removed.has(share.replica)),
    { name, replica: '', leased: 0, waiting: 0, weight: 0, finish: now },
  ]);
  return {
    allocation: allocationOf(shares, replica, free),
    notify: granted.length > 0 || (mine.waiting > 0 && (before?.waiting ?? 0) === 0),
  };
}

/**
 * Whether a replica neither holds nor requests slots. Its row can be deleted once the virtual time has reached its
 * finish tag.
 */
function isIdle({ leased, waiting }: SlotLease): boolean {
  return leased === 0 && waiting === 0;
}

/** Reads the allocation of the slots `name`. */
export async function readSlots<DB extends SlotLeasesDatabase>(
  reader: Kysely<DB>,
  { name, replica, limit }: Pick<SlotDemand, 'name' | 'replica' | 'limit'>,
): Promise<SlotAllocation> {
  const db = reader as unknown as Kysely<SlotLeasesDatabase>;
  const rows = (await readLeases(db, name)).filter((row) => row.replica !== '');
  return allocationOf(rows, replica, limit - sum(rows.map(({ leased }) => leased)));
}

/**
 * Returns the next replica to serve: the one with the smallest start tag or, if only BACKGROUND calls wait, the one
 * with the fewest slots.
 */
function nextOf(shares: readonly SlotLease[], now: number): SlotLease | undefined {
  const waiting = shares.filter((share) => share.waiting > 0);
  const weighted = waiting.filter(({ weight }) => weight > 0);
  const startTag = ({ finish }: SlotLease) => Math.max(now, finish);
  if (weighted.length > 0) return weighted.reduce((a, b) => (startTag(b) < startTag(a) ? b : a));
  if (waiting.length === 0) return undefined;
  return waiting.reduce((a, b) => (b.leased < a.leased ? b : a));
}

function allocationOf(shares: readonly SlotLease[], replica: string, free: number): SlotAllocation {
  const mine = shares.find((share) => share.replica === replica);
  const others = shares.filter((share) => share !== mine);
  return {
    leased: mine?.leased ?? 0,
    waiting: mine?.waiting ?? 0,
    leasedByOthers: sum(others.map(({ leased }) => leased)),
    waitingAtOthers: sum(others.map(({ waiting }) => waiting)),
    free,
    others: others
      .filter(({ leased, waiting }) => leased > 0 || waiting > 0)
      .map((share) => share.replica),
    known: mine !== undefined,
  };
}

async function readLeases(db: Kysely<SlotLeasesDatabase>, name: string): Promise<SlotLease[]> {
  return await db.selectFrom('slot_leases').selectAll().where('name', '=', name).execute();
}

async function deleteLease(
  trx: Transaction<SlotLeasesDatabase>,
  name: string,
  replica: string,
): Promise<void> {
  await trx
    .deleteFrom('slot_leases')
    .where('name', '=', name)
    .where('replica', '=', replica)
    .execute();
}

async function upsert(
  trx: Transaction<SlotLeasesDatabase>,
  rows: readonly SlotLease[],
): Promise<void> {
  await trx
    .insertInto('slot_leases')
    .values([...rows])
    .onConflict((conflict) =>
      conflict.columns(['name', 'replica']).doUpdateSet((row) => ({
        leased: row.ref('excluded.leased'),
        waiting: row.ref('excluded.waiting'),
        weight: row.ref('excluded.weight'),
        finish: row.ref('excluded.finish'),
      })),
    )
    .execute();
}

function sum(figures: readonly number[]): number {
  return figures.reduce((total, figure) => total + figure, 0);
}
