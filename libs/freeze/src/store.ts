import { type AgentKey, type HistoryRetention, scopeKey, scopesOver } from '@writ/kernel';
import { column, prepareQuery, RowCache, type TableOf, table } from '@writ/store';
import type { Kysely, Transaction } from 'kysely';
import { type FreezeCause, type FreezeOrder, purges } from './order.ts';

/** Freeze orders, one row per order (SV-9). */
export const freezesTable = table('freezes', {
  columns: {
    order_id: column.text(),
    /** `*`, a tenant, `tenant/run` or `tenant/run/agent`. */
    scope: column.text(),
    cause: column.text<FreezeCause>(),
    reason: column.text(),
    ordered_by: column.text(),
    ordered_at: column.timestamp(),
    recorded_at: column.timestamp(),
    retention: column.text<HistoryRetention>().nullable(),
    lifted_at: column.timestamp().nullable(),
  },
  primaryKey: ['order_id'],
  indexes: { freezes_in_force: { on: ['scope'], where: ['lifted_at', 'is', null] } },
});

/** The database of a service that can be frozen. */
export interface FreezesDatabase {
  freezes: TableOf<typeof freezesTable>;
}

/** An order in force, with the key of its scope. */
export interface FreezeInForce
  extends Pick<FreezeOrder, 'orderId' | 'cause' | 'reason' | 'orderedBy' | 'retention'> {
  readonly scope: string;
}

/** Scopes per query; databases limit the number of parameters. */
const MAX_SCOPES = 500;

/** Returns the orders in force that cover an agent: halts first, then oldest first. */
export async function freezesOver<DB extends FreezesDatabase>(
  db: Kysely<DB>,
  subject: AgentKey,
): Promise<readonly FreezeInForce[]> {
  const scopes = scopesOver(subject);
  const known = await cachedFreezes(narrowed(db));
  if (known !== NOT_CACHED) return known.filter(({ scope }) => scopes.includes(scope));
  const [everything, tenant, run, agent] = scopes;
  const { rows } = await selectOver(narrowed(db), { everything, tenant, run, agent });
  return toFreezes(rows);
}

/** Limit of cached orders; above it, each lookup is a query. */
export const MAX_CACHED_FREEZES = 200;
const NOT_CACHED = 'not cached';
const IN_FORCE = 'in force';

/** All orders in force, under one key. Every change of the table is made in this file and clears the cache. */
const cache = new RowCache<readonly FreezeInForce[] | typeof NOT_CACHED>();

/**
 * Returns all orders in force. Returns NOT_CACHED if there are too many, if the database is PostgreSQL, or outside of a
 * transaction.
 */
async function cachedFreezes(
  db: Kysely<FreezesDatabase>,
): Promise<readonly FreezeInForce[] | typeof NOT_CACHED> {
  const known = cache.get(db, IN_FORCE);
  if (known !== undefined) return known;
  if (!cache.keeps(db)) return NOT_CACHED;
  const { rows } = await selectAllInForce(db, { limit: MAX_CACHED_FREEZES + 1 });
  const read = rows.length > MAX_CACHED_FREEZES ? NOT_CACHED : toFreezes(rows);
  cache.set(db, IN_FORCE, read);
  return read;
}

/** Returns the orders in force that cover any of the agents: halts first, then oldest first. */
export async function freezesOverAny<DB extends FreezesDatabase>(
  db: Kysely<DB>,
  subjects: readonly AgentKey[],
): Promise<readonly FreezeInForce[]> {
  const scopes = [...new Set(subjects.flatMap(scopesOver))];
  const found: FreezeRow[] = [];
  for (let from = 0; from < scopes.length; from += MAX_SCOPES) {
    const rows = await selectInForce(narrowed(db), scopes.slice(from, from + MAX_SCOPES)).execute();
    found.push(...rows);
  }
  return toFreezes(found);
}

/** Whether an order in force purges the payloads recorded for an agent (SUP-4). */
export async function isPurged<DB extends FreezesDatabase>(
  db: Kysely<DB>,
  subject: AgentKey,
): Promise<boolean> {
  return (await freezesOver(db, subject)).some(purges);
}

/**
 * Records an order. An order with a known id is not changed.
 * @returns the recorded order with this id
 */
export async function insertFreeze<DB extends FreezesDatabase>(
  trx: Transaction<DB>,
  order: FreezeOrder,
  at: Date,
): Promise<{ readonly scope: string; readonly lifted: boolean }> {
  const db = narrowed(trx);
  const known = await db
    .selectFrom('freezes')
    .select(['scope', 'lifted_at'])
    .where('order_id', '=', order.orderId)
    .executeTakeFirst();
  if (known !== undefined) return { scope: known.scope, lifted: known.lifted_at !== null };
  const scope = scopeKey(order.scope);
  await db
    .insertInto('freezes')
    .values({
      order_id: order.orderId,
      scope,
      cause: order.cause,
      reason: order.reason,
      ordered_by: order.orderedBy,
      ordered_at: order.orderedAt,
      recorded_at: at,
      retention: order.retention,
      lifted_at: null,
    })
    .execute();
  cache.clear(db);
  return { scope, lifted: false };
}

/** Freezes everything in a service whose database was recovered, until the halt of the recovery is lifted (BD-4). */
export async function freezeRecovered<DB extends FreezesDatabase>(
  trx: Transaction<DB>,
  { haltId }: { readonly haltId: string },
  at: Date,
): Promise<void> {
  const reason = 'A database was recovered.';
  const order = { orderId: haltId, scope: {}, cause: 'halt', reason, retention: null } as const;
  await insertFreeze(trx, { ...order, orderedBy: 'writ-recover', orderedAt: at }, at);
}

/** Lifts one order and no other (SV-9). Returns whether it was in force. */
export async function liftFreeze<DB extends FreezesDatabase>(
  trx: Transaction<DB>,
  orderId: string,
  at: Date,
): Promise<boolean> {
  const db = narrowed(trx);
  const { numUpdatedRows } = await db
    .updateTable('freezes')
    .set({ lifted_at: at })
    .where('order_id', '=', orderId)
    .where('lifted_at', 'is', null)
    .executeTakeFirst();
  cache.clear(db);
  return numUpdatedRows > 0n;
}

const COLUMNS = [
  'scope',
  'order_id',
  'cause',
  'reason',
  'ordered_by',
  'ordered_at',
  'retention',
] as const;

type FreezeRow = Pick<TableOf<typeof freezesTable>, (typeof COLUMNS)[number]>;
type ScopeKeys = Readonly<Record<'everything' | 'tenant' | 'run' | 'agent', string>>;

const selectOver = prepareQuery((db: Kysely<FreezesDatabase>, keys: ScopeKeys) =>
  selectInForce(db, [keys.everything, keys.tenant, keys.run, keys.agent]),
);

function selectInForce(db: Kysely<FreezesDatabase>, scopes: readonly string[]) {
  return db
    .selectFrom('freezes')
    .select(COLUMNS)
    .where('scope', 'in', scopes)
    .where('lifted_at', 'is', null);
}

const selectAllInForce = prepareQuery(
  (db: Kysely<FreezesDatabase>, { limit }: { readonly limit: number }) =>
    db.selectFrom('freezes').select(COLUMNS).where('lifted_at', 'is', null).limit(limit),
);

/**
 * Converts rows to freezes, sorted by precedence. They are sorted here because orders are rare and an ORDER BY would
 * slow down every call.
 */
function toFreezes(rows: readonly FreezeRow[]): FreezeInForce[] {
  return rows.length === 0 ? [] : rows.toSorted(byPrecedence).map(toFreeze);
}

function byPrecedence(a: FreezeRow, b: FreezeRow): number {
  const halts = Number(b.cause === 'halt') - Number(a.cause === 'halt');
  return halts || a.ordered_at.getTime() - b.ordered_at.getTime();
}

function toFreeze({ order_id, ordered_by, ordered_at: _, ...row }: FreezeRow): FreezeInForce {
  return { ...row, orderId: order_id, orderedBy: ordered_by };
}

/** Returns the database of a service, typed as a database with only the freezes table. */
function narrowed<DB extends FreezesDatabase>(db: Kysely<DB>): Kysely<FreezesDatabase> {
  return db as unknown as Kysely<FreezesDatabase>;
}
