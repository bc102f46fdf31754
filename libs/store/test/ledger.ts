import type { Kysely } from 'kysely';
import {
  type Migrations,
  type OutboxDatabase,
  outboxTable,
  pickColumns,
  prepareWrite,
} from '../src/index.ts';

/** The database of the tests: a small ledger with an outbox. */
export interface LedgerDatabase extends OutboxDatabase {
  account: { name: string; balance: bigint };
  entry: { id: string; amount: bigint; estimated: boolean; at: Date; note: Uint8Array | null };
}

/** Creates the ledger: accounts, entries and the outbox. */
export const ledgerMigrations: Migrations = {
  '0001_outbox': { up: outboxTable.create },
  '0002_ledger': {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('account')
        .addColumn('name', 'text', (column) => column.primaryKey())
        .addColumn('balance', 'bigint', (column) => column.notNull())
        .execute();
      await db.schema
        .createTable('entry')
        .addColumn('id', 'text', (column) => column.primaryKey())
        .addColumn('amount', 'bigint', (column) => column.notNull())
        .addColumn('estimated', 'boolean', (column) => column.notNull())
        .addColumn('at', 'timestamptz', (column) => column.notNull())
        .addColumn('note', 'bytea')
        .execute();
    },
  },
};

const COLUMNS = ['id', 'amount', 'estimated', 'at', 'note'] as const;

/** Inserts an entry without waiting for the response of the database. */
export const insertAhead = prepareWrite(
  (trx: Kysely<LedgerDatabase>, row: LedgerDatabase['entry']) =>
    trx.insertInto('entry').values(pickColumns(row, COLUMNS)),
);

/** An entry with default values. */
export function entry(id: string, amount = 1n): LedgerDatabase['entry'] {
  return { id, amount, estimated: false, at: new Date('2026-01-01T00:00:00Z'), note: null };
}
