import type { Kysely, Transaction } from 'kysely';
import type { Migrations } from '../schema/migrations.ts';
import { column, type RowOf, type TableOf, table } from '../schema/table.ts';

/** How many slots of a name each replica holds, and how many calls wait for one at that replica. */
export const slotLeasesTable = table('slot_leases', {
  columns: {
    name: column.text(),
    /** Empty in the row that holds the virtual time. */
    replica: column.text(),
    leased: column.integer(),
    waiting: column.integer(),
    /** Sum of the weights of the waiting calls; 0 if only BACKGROUND waits. */
    weight: column.integer(),
    /** Finish tag of the replica's last share; in the row without a replica, the virtual time. */
    finish: column.real(),
  },
  primaryKey: ['name', 'replica'],
});

type SlotLease = RowOf<typeof slotLeasesTable>;

/** The database of a service whose replicas share slots. */
export interface SlotLeasesDatabase {
  slot_leases: TableOf<typeof slotLeasesTable>;
}

/** Creates {@link slotLeasesTable}. */
export const slotLeasesMigration: Migrations[string] = { up: slotLeasesTable.create };

/** What a replica says when it shares out slots. */
export interface SlotDemand {
  readonly name: string;
  readonly replica: string;
  readonly limit: number;
  /** Slots in use here; the replica keeps at least these. */
  readonly inUse: number;
  /** Slots that it has and does not need. */
  readonly givesBack: number;
  readonly waiting: number;
  readonly weight: number;
  /** Replicas that have ended: what they had is free. */
  readonly gone: ReadonlySet<string>;
  /** The replica ends, and its place in line with it. */
  readonly leaves?: boolean;
}

/** How slots stand, as a replica sees it. */
export interface SlotStanding {
  readonly leased: number;
  /** Calls that the others believe to wait here. */
  readonly waiting: number;
  /** Calls that wait at other replicas. */
  readonly waitingElsewhere: number;
  readonly leasedElsewhere: number;
  /** Slots that nobody has. */
  readonly free: number;
  /** The others that have some, or want some. */
  readonly others: readonly string[];
  /** Whether this replica is in the table. */
  readonly known: boolean;
}

/** Divisible by every weight of a single call. */
const SCALE = 8;

/**
 * Gives back, says what is wanted, and shares out what is free: among the replicas that want some in the
 * ratio of the weights that wait there (start-time fair queueing, SUP-3), so that it comes to the same as
 * one queue for all. BACKGROUND is served when nobody else waits anywhere.
 * @returns how it stands, and whether another replica was given a slot or should know that this one waits
 */
export async function shareOut<DB extends SlotLeasesDatabase>(
  transaction: Transaction<DB>,
  demand: SlotDemand,
): Promise<{ readonly standing: SlotStanding; readonly tell: boolean }> {
  const trx = transaction as unknown as Transaction<SlotLeasesDatabase>;
  const { name, replica, limit, inUse, givesBack, waiting, weight, gone, leaves } = demand;
  const rows = await readLeases(trx, name);
  const clock = rows.find((row) => row.replica === '');
  const before = rows.find((row) => row.replica === replica);
  const mine: SlotLease = {
    name,
    replica,
    leased: Math.max(inUse, (before?.leased ?? 0) - givesBack),
    waiting,
    weight,
    finish: before?.finish ?? 0,
  };
  const others = rows.filter(
    (row) => row.replica !== '' && row.replica !== replica && !gone.has(row.replica),
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
  // Nobody is behind anybody: whoever comes next begins with everybody else.
  if (shares.every(isIdle)) now = Math.max(now, ...shares.map(({ finish }) => finish));
  const given = shares.filter(
    (share, index) => index > 0 && share.leased !== others[index - 1]?.leased,
  );
  const isOver = (share: SlotLease): boolean =>
    isIdle(share) && (share.finish <= now || (share === mine && leaves === true));
  const over = new Set(shares.filter(isOver).map((share) => share.replica));
  for (const row of rows) {
    const { replica: former } = row;
    if (gone.has(former) || over.has(former)) await deleteLease(trx, name, former);
  }
  await upsert(trx, [
    ...[mine, ...given].filter((share) => !over.has(share.replica)),
    { name, replica: '', leased: 0, waiting: 0, weight: 0, finish: now },
  ]);
  return {
    standing: standingOf(shares, replica, free),
    tell: given.length > 0 || (mine.waiting > 0 && (before?.waiting ?? 0) === 0),
  };
}

/** Has nothing and wants nothing. Once the virtual time has passed its share, its row says nothing. */
function isIdle({ leased, waiting }: SlotLease): boolean {
  return leased === 0 && waiting === 0;
}

/** How the slots called `name` stand. */
export async function readSlots<DB extends SlotLeasesDatabase>(
  reader: Kysely<DB>,
  { name, replica, limit }: Pick<SlotDemand, 'name' | 'replica' | 'limit'>,
): Promise<SlotStanding> {
  const db = reader as unknown as Kysely<SlotLeasesDatabase>;
  const rows = (await readLeases(db, name)).filter((row) => row.replica !== '');
  return standingOf(rows, replica, limit - sum(rows.map(({ leased }) => leased)));
}

/** Who is served next: the smallest start tag, or, when only BACKGROUND waits, whoever has least. */
function nextOf(shares: readonly SlotLease[], now: number): SlotLease | undefined {
  const waiting = shares.filter((share) => share.waiting > 0);
  const weighted = waiting.filter(({ weight }) => weight > 0);
  const order = ({ finish }: SlotLease) => Math.max(now, finish);
  if (weighted.length > 0) return weighted.reduce((a, b) => (order(b) < order(a) ? b : a));
  if (waiting.length === 0) return undefined;
  return waiting.reduce((a, b) => (b.leased < a.leased ? b : a));
}

function standingOf(shares: readonly SlotLease[], replica: string, free: number): SlotStanding {
  const mine = shares.find((share) => share.replica === replica);
  const others = shares.filter((share) => share !== mine);
  return {
    leased: mine?.leased ?? 0,
    waiting: mine?.waiting ?? 0,
    leasedElsewhere: sum(others.map(({ leased }) => leased)),
    waitingElsewhere: sum(others.map(({ waiting }) => waiting)),
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
