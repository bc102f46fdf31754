import type { Migration } from 'kysely/migration';
import { createTable } from './create-table.ts';

/** Delegations, and the slot state of agents. */
export const childTables: Migration = {
  async up(db) {
    await createTable(
      db,
      'spawns',
      {
        tenant: 'text',
        run_id: 'text',
        parent_instance: 'text',
        call_id: 'text',
        child_instance: 'text',
        child_name: 'text',
        correlation_id: 'text',
        state: 'text',
        why_not: 'text?',
        paused: 'text?',
        end_call_id: 'text?',
        end_outcome: 'text?',
        resumed: 'text?',
        created_at: 'timestamptz',
      },
      ['tenant', 'run_id', 'parent_instance', 'call_id'],
      { spawns_child: ['tenant', 'run_id', 'child_instance'] },
    );
    for (const column of ['paused_since', 'slot_changed_at']) {
      await db.schema.alterTable('agents').addColumn(column, 'timestamptz').execute();
    }
  },
};
