import { type Kysely, sql } from 'kysely';
import { prepareQuery } from '../query/prepared-query.ts';
import type { Store, TransactionOptions } from '../store.ts';
import type { OutboxDatabase, OutboxMessage } from './outbox.ts';

/** An unpublished message. */
export interface PendingMessage {
  readonly position: number | bigint;
  readonly message: Required<OutboxMessage>;
}

/**
 * Returns the oldest unpublished messages in order, except the messages in `accepted`, which the bus has accepted but
 * which are not yet marked as published. On PostgreSQL, where transactions overlap, a message can become visible after
 * a message with a higher position, so messages below the highest accepted position may still be unpublished.
 */
export async function readPending(
  { db, dialect }: Store<OutboxDatabase>,
  limit: number,
  accepted: readonly (number | bigint)[] = [],
): Promise<PendingMessage[]> {
  const isOrdered = dialect === 'sqlite' || accepted.length === 0;
  const { rows } = isOrdered
    ? await selectPending(db, { limit, after: accepted.at(-1) ?? 0 })
    : await selectPendingExcept(db, { limit, accepted: `{${accepted.join()}}` });
  return rows.map((row) => ({
    position: row.position,
    message: {
      eventId: row.event_id,
      subject: row.subject,
      payload: row.payload,
      headers: JSON.parse(row.headers) as Record<string, string>,
    },
  }));
}

const selectPending = prepareQuery(
  (
    db: Kysely<OutboxDatabase>,
    { limit, after }: { readonly limit: number; readonly after: number | bigint },
  ) =>
    db
      .selectFrom('outbox')
      .select(['position', 'event_id', 'subject', 'payload', 'headers'])
      .where('published_at', 'is', null)
      .where('position', '>', after)
      .orderBy('position')
      .limit(limit),
);

const selectPendingExcept = prepareQuery(
  (
    db: Kysely<OutboxDatabase>,
    { limit, accepted }: { readonly limit: number; readonly accepted: string },
  ) =>
    db
      .selectFrom('outbox')
      .select(['position', 'event_id', 'subject', 'payload', 'headers'])
      .where('published_at', 'is', null)
      .where(sql<boolean>`position <> all (${accepted}::bigint[])`)
      .orderBy('position')
      .limit(limit),
);

/** Resource of the transactions that change or delete committed messages; only the relay runs such transactions. */
const RESOURCE = 'outbox';

/** Marks messages as published; if the mark is lost, they are published again under the same event id. */
export async function markPublished(
  store: Store<OutboxDatabase>,
  positions: readonly (number | bigint)[],
  at: Date,
  options: Pick<TransactionOptions, 'commitDelayMs'> = {},
): Promise<void> {
  const [first] = positions;
  if (first === undefined) return;
  // Padded to a power of two, so that only a few different statements are prepared and cached.
  const padded = Array.from(
    { length: 2 ** Math.ceil(Math.log2(positions.length)) },
    (_, index) => positions[index] ?? first,
  );
  await store.transaction(
    (trx) =>
      trx.updateTable('outbox').set({ published_at: at }).where('position', 'in', padded).execute(),
    { resource: RESOURCE, background: true, relaxedDurability: true, ...options },
  );
}

/**
 * Deletes the rows among the `limit` oldest that were published before `cutoff`; returns the number of deleted rows.
 */
export async function prunePublished(
  store: Store<OutboxDatabase>,
  cutoff: Date,
  limit: number,
): Promise<number> {
  const result = await store.transaction(
    (trx) =>
      trx
        .deleteFrom('outbox')
        .where('position', 'in', (query) =>
          query.selectFrom('outbox').select('position').orderBy('position').limit(limit),
        )
        .where('published_at', '<', cutoff)
        .executeTakeFirst(),
    { resource: RESOURCE, background: true },
  );
  return Number(result.numDeletedRows);
}

/** The number of unpublished messages, counted up to `atMost`, and the time of the oldest. */
export async function countPending(
  { db }: Store<OutboxDatabase>,
  atMost: number,
): Promise<{ readonly count: number; readonly oldestAt: Date | undefined }> {
  const { count } = await db
    .selectFrom(
      db
        .selectFrom('outbox')
        .select('position')
        .where('published_at', 'is', null)
        .limit(atMost)
        .as('waiting'),
    )
    .select((query) => query.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  return { count: Number(count), oldestAt: await oldestPending(db) };
}

/** The number of unpublished messages, and the time of the oldest. */
export async function readBacklog(
  db: Kysely<OutboxDatabase>,
): Promise<{ readonly count: number; readonly oldestAt: Date | undefined }> {
  const { count } = await db
    .selectFrom('outbox')
    .where('published_at', 'is', null)
    .select((query) => query.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  return { count: Number(count), oldestAt: await oldestPending(db) };
}

async function oldestPending(db: Kysely<OutboxDatabase>): Promise<Date | undefined> {
  const oldest = await db
    .selectFrom('outbox')
    .where('published_at', 'is', null)
    .select('created_at')
    .orderBy('position')
    .limit(1)
    .executeTakeFirst();
  return oldest?.created_at;
}
