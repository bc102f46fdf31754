import type { Migration } from 'kysely/migration';
import { createTable } from './create-table.ts';

/** The definitions of the agents that a run may delegate to, as of its start. */
export const definitionTables: Migration = {
  async up(db) {
    const columns = { tenant: 'text', run_id: 'text', name: 'text', manifest: 'text' } as const;
    await createTable(db, 'definitions', columns, ['tenant', 'run_id', 'name']);
  },
};
