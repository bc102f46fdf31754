import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import { createTable } from './create-table.ts';

/** Halts, and the index of a tenant's runs in progress. */
export const haltTables: Migration = {
  async up(db) {
    await createTable(
      db,
      'halts',
      {
        halt_id: 'text',
        scope: 'text',
        tenant: 'text?',
        run_id: 'text?',
        instance: 'text?',
        reason: 'text',
        end_runs: 'boolean',
        ordered_by: 'text',
        ordered_for: 'text',
        ordered_at: 'timestamptz',
        state: 'text',
        meter_at: 'timestamptz?',
        gateway_at: 'timestamptz?',
        meter_in_flight: 'text',
        gateway_in_flight: 'text',
        resumed_by: 'text?',
        lifted_at: 'timestamptz?',
      },
      ['halt_id'],
    );
    await db.schema
      .createIndex('halts_in_force')
      .on('halts')
      .column('scope')
      .where(sql.ref('lifted_at'), 'is', null)
      .execute();
    await db.schema
      .createIndex('halts_by_time')
      .on('halts')
      .columns(['ordered_at', 'halt_id'])
      .execute();
    await db.schema
      .createIndex('runs_under_way')
      .on('runs')
      .columns(['tenant', 'run_id'])
      .where(sql.ref('ended_at'), 'is', null)
      .execute();
  },
};
