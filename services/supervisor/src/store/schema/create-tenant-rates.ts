import type { Migrations } from '@writ/store';

/** The token buckets of tenants, shared by all replicas. */
export const tenantRateTables: Migrations[string] = {
  async up(db) {
    await db.schema
      .createTable('tenant_rates')
      .addColumn('tenant', 'text', (column) => column.primaryKey())
      .addColumn('tokens', 'double precision', (column) => column.notNull())
      .addColumn('filled_at', 'timestamptz', (column) => column.notNull())
      .execute();
  },
};
