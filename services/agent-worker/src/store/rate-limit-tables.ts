import type { Migration } from 'kysely/migration';

/** The number of turns that a shared rate limit has given. */
export interface RateLimitsTable {
  tenant: string;
  name: string;
  turns: bigint;
}

/** The latest turns of a rate limit, as many as it allows in one period. */
export interface RateTurnsTable {
  tenant: string;
  name: string;
  /** From 1. */
  turn: bigint;
  at: Date;
}

/** The turns of shared rate limits (AG-9). */
export const rateLimitTables: Migration = {
  async up(db) {
    await db.schema
      .createTable('rate_limits')
      .addColumn('tenant', 'text', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('turns', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('rate_limits_key', ['tenant', 'name'])
      .execute();
    await db.schema
      .createTable('rate_turns')
      .addColumn('tenant', 'text', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('turn', 'bigint', (column) => column.notNull())
      .addColumn('at', 'timestamptz', (column) => column.notNull())
      .addPrimaryKeyConstraint('rate_turns_key', ['tenant', 'name', 'turn'])
      .execute();
  },
};
