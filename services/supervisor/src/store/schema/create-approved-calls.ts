import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The number of approved tool calls of a run, kept as a counter so that reviews of a long run cost no more. */
export const approvedCallColumns: Migration = {
  async up(db) {
    await db.schema
      .alterTable('runs')
      .addColumn('approved_calls', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    await sql`update runs set approved_calls = (select count(*) from decisions where decisions.tenant = runs.tenant and decisions.run_id = runs.run_id and args_sha256 is not null)`.execute(
      db,
    );
  },
};
