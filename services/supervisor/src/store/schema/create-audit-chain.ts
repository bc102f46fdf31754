import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import { createTable } from './create-table.ts';

/** Tables of the audit chains, checkpoints, leases and refusals. */
export const auditChainTables: Migration = {
  async up(db) {
    const lease = { name: 'text', holder: 'text', expires_at: 'timestamptz' } as const;
    await createTable(db, 'leases', lease, ['name']);
    await createTable(
      db,
      'audit_chains',
      {
        tenant: 'text',
        sequence: 'integer',
        hash: 'text',
        signed_count: 'integer',
        signed_at: 'timestamptz',
      },
      ['tenant'],
    );
    await createTable(
      db,
      'audit_checkpoints',
      { tenant: 'text', count: 'integer', signed: 'text', signed_at: 'timestamptz' },
      ['tenant', 'count'],
    );
    const refusal = { tenant: 'text', refusal_id: 'text', recorded_at: 'timestamptz' } as const;
    await createTable(db, 'refusals', refusal, ['tenant', 'refusal_id']);
    await db.schema
      .createIndex('audit_unlinked')
      .on('audit')
      .column('position')
      .where(sql.ref('sequence'), 'is', null)
      .execute();
    await db.schema
      .createIndex('audit_by_run')
      .on('audit')
      .columns(['tenant', 'run_id', 'sequence'])
      .execute();
  },
};
