import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The time of a purge, and the index of runs to purge. */
export const purgeColumns: Migration = {
  async up(db) {
    await db.schema.alterTable('runs').addColumn('purged_at', 'timestamptz').execute();
    await db.schema
      .createIndex('runs_to_purge')
      .on('runs')
      .columns(['retention', 'ended_at'])
      .where(sql.ref('purged_at'), 'is', null)
      .execute();
  },
};
