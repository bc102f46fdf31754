import type { Migration } from 'kysely/migration';
import { createTable } from './create-table.ts';

/** The definitions of the agents that a run may hand work to, as they were when it began. */
export const definitionTables: Migration = {
  async up(db) {
    const columns = { tenant: 'text', run_id: 'text', name: 'text', manifest: 'text' } as const;
    await createTable(db, 'definitions', columns, ['tenant', 'run_id', 'name']);
  },
};
