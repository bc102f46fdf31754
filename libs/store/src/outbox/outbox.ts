import { type Generated, type Kysely, sql, type Transaction } from 'kysely';
import type { Migration } from 'kysely/migration';
import { prepareQuery } from '../query/prepared-query.ts';
import { addPosition } from '../schema/portable-schema.ts';

/** One message that is to leave the service, in the shape that a bus publishes (HK-2). */
export interface OutboxMessage {
  /** Derived from the fact, so that a repeat is the same event (HK-1). */
  readonly eventId: string;
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The rows of the outbox. */
export interface OutboxTable {
  readonly position: Generated<number | bigint>;
  readonly event_id: string;
  readonly subject: string;
  readonly payload: Uint8Array;
  /** JSON object of strings. */
  readonly headers: string;
  readonly created_at: Date;
  /** Null until the bus has taken the message. */
  readonly published_at: Date | null;
}

/** What the database of a service with an outbox has. */
export interface OutboxDatabase {
  outbox: OutboxTable;
}

/** Creates the table `outbox`; every service that publishes lists it among its migrations. */
export const outboxMigration: Migration = {
  async up(db) {
    await addPosition(db, db.schema.createTable('outbox'))
      .addColumn('event_id', 'text', (column) => column.notNull().unique())
      .addColumn('subject', 'text', (column) => column.notNull())
      .addColumn('payload', 'bytea', (column) => column.notNull())
      .addColumn('headers', 'text', (column) => column.notNull())
      .addColumn('created_at', 'timestamptz', (column) => column.notNull())
      .addColumn('published_at', 'timestamptz')
      .execute();
    await db.schema
      .createIndex('outbox_pending')
      .on('outbox')
      .column('position')
      .where(sql.ref('published_at'), 'is', null)
      .execute();
  },
};

/**
 * Records a message in the transaction of the fact that it tells of, so that neither exists without
 * the other (HK-2). An event id that is there already is the same event and changes nothing (HK-1).
 */
export async function appendOutbox<DB extends OutboxDatabase>(
  trx: Transaction<DB>,
  message: OutboxMessage,
  at: Date,
): Promise<void> {
  const { eventId, subject, payload, headers = {} } = message;
  const row = { eventId, subject, payload, headers: JSON.stringify(headers), at };
  await insertMessage(trx as unknown as Transaction<OutboxDatabase>, row);
}

type NewMessage = Omit<OutboxMessage, 'headers'> & { readonly headers: string; readonly at: Date };

const insertMessage = prepareQuery((db: Kysely<OutboxDatabase>, row: NewMessage) =>
  db
    .insertInto('outbox')
    .values({
      event_id: row.eventId,
      subject: row.subject,
      payload: row.payload,
      headers: row.headers,
      created_at: row.at,
      published_at: null,
    })
    .onConflict((conflict) => conflict.column('event_id').doNothing()),
);
