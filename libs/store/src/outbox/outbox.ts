import type { Insertable, Transaction } from 'kysely';
import { DeferredInsert } from '../query/deferred-insert.ts';
import { column, type TableOf, table } from '../schema/table.ts';

/** A message to publish (HK-2). */
export interface OutboxMessage {
  /** Derived from the change that the event reports, so that a repeat of the change has the same id (HK-1). */
  readonly eventId: string;
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The unpublished messages and the recently published ones. */
export const outboxTable = table('outbox', {
  columns: {
    position: column.position(),
    event_id: column.text().unique(),
    subject: column.text(),
    payload: column.bytes(),
    /** JSON object of strings. */
    headers: column.text(),
    created_at: column.timestamp(),
    /** Null until the bus has accepted the message. */
    published_at: column.timestamp().nullable(),
  },
  indexes: { outbox_pending: { on: ['position'], where: ['published_at', 'is', null] } },
});

export type OutboxTable = TableOf<typeof outboxTable>;

/** The database of a service with an outbox. */
export interface OutboxDatabase {
  outbox: OutboxTable;
}

/**
 * Records a message in the transaction of the change that it reports, so that neither exists without the other (HK-2).
 * If the event id already exists, the message is the same event and is ignored (HK-1). The messages of a transaction
 * are inserted together at its end.
 */
export function appendOutbox<DB extends OutboxDatabase>(
  trx: Transaction<DB>,
  message: OutboxMessage,
  at: Date,
): void {
  const { eventId, subject, payload, headers = {} } = message;
  messages.add(trx as unknown as Transaction<OutboxDatabase>, {
    event_id: eventId,
    subject,
    payload,
    headers: JSON.stringify(headers),
    created_at: at,
    published_at: null,
  });
}

/**
 * Returns the ids in `eventIds` that the outbox still contains; published events are deleted after the retention time.
 */
export async function recordedEvents<DB extends OutboxDatabase>(
  trx: Transaction<DB>,
  eventIds: readonly string[],
): Promise<ReadonlySet<string>> {
  if (eventIds.length === 0) return new Set();
  const rows = await (trx as unknown as Transaction<OutboxDatabase>)
    .selectFrom('outbox')
    .select('event_id')
    .where('event_id', 'in', eventIds)
    .execute();
  return new Set(rows.map(({ event_id: id }) => id));
}

const messages = new DeferredInsert<OutboxDatabase, Omit<Insertable<OutboxTable>, 'position'>>({
  table: 'outbox',
  columns: ['event_id', 'subject', 'payload', 'headers', 'created_at', 'published_at'],
  unlessExists: 'event_id',
});
