import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/**
 * Indexes for reading inactive agents in pages in key order and for counting unended agents by state,
 * so that neither query scans other rows.
 */
export const inactiveAgentIndexes: Migration = {
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
