import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Agents that have not ended are counted by state now and then, over whatever else there is. */
export const aliveIndex: Migration = {
  async up(db) {
    await db.schema
      .createIndex('agents_alive')
      .on('agents')
      .column('state')
      .where(sql.ref('ended_at'), 'is', null)
      .execute();
  },
};
