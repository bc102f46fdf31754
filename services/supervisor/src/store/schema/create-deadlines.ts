import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The deadlines of agents below the root. */
export const deadlineColumns: Migration = {
  async up(db) {
    await db.schema.alterTable('agents').addColumn('deadline_at', 'timestamptz').execute();
    await db.schema
      .createIndex('agents_deadline')
      .on('agents')
      .column('deadline_at')
      .where(sql.ref('ended_at'), 'is', null)
      .execute();
  },
};
