import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/**
 * Agents at rest are read in pages in the order of their keys, and agents that have not ended are
 * counted by state: neither may look through whatever else there is.
 */
export const restingIndexes: Migration = {
  async up(db) {
    await db.schema.dropIndex('agents_parked').execute();
    await db.schema.dropIndex('agents_alive').execute();
    await db.schema
      .createIndex('agents_preempted')
      .on('agents')
      .columns(['tenant', 'run_id', 'instance'])
      .where((eb) =>
        eb.and([eb(sql.ref('state'), '=', sql.lit('PARKED')), eb(sql.ref('wake_at'), 'is', null)]),
      )
      .execute();
    await db.schema
      .createIndex('agents_alive')
      .on('agents')
      .columns(['state', 'tenant', 'run_id', 'instance'])
      .where(sql.ref('ended_at'), 'is', null)
      .execute();
  },
};
