import { type Migrations, outboxMigration } from '@writ/store';
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const pools: Migration = {
  async up(db) {
    await db.schema
      .createTable('pools')
      .addColumn('tenant', 'text', (column) => column.notNull())
      .addColumn('run_id', 'text', (column) => column.notNull())
      .addColumn('stamp', 'text', (column) => column.notNull())
      .addColumn('root', 'text', (column) => column.notNull())
      .addColumn('max_agents', 'integer', (column) => column.notNull())
      .addColumn('allow_preempt', 'boolean', (column) => column.notNull())
      .addColumn('max_total_spawns', 'bigint')
      .addColumn('max_depth', 'bigint')
      .addColumn('deadline_at', 'timestamptz')
      .addColumn('sequence', 'bigint', (column) => column.notNull())
      .addColumn('total_spawns', 'bigint', (column) => column.notNull())
      .addColumn('total_pauses', 'bigint', (column) => column.notNull())
      .addColumn('total_refusals', 'bigint', (column) => column.notNull())
      .addColumn('request_id', 'text', (column) => column.notNull())
      .addColumn('request_digest', 'text', (column) => column.notNull())
      .addColumn('traceparent', 'text', (column) => column.notNull())
      .addColumn('opened_at', 'timestamptz', (column) => column.notNull())
      .addColumn('closed_at', 'timestamptz')
      .addPrimaryKeyConstraint('pools_key', ['tenant', 'run_id'])
      .execute();
    await db.schema
      .createIndex('pools_closed')
      .on('pools')
      .column('closed_at')
      .where(sql.ref('closed_at'), 'is not', null)
      .execute();
  },
};

const members: Migration = {
  async up(db) {
    await db.schema
      .createTable('members')
      .addColumn('tenant', 'text', (column) => column.notNull())
      .addColumn('run_id', 'text', (column) => column.notNull())
      .addColumn('instance', 'text', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('parent_instance', 'text')
      .addColumn('parent_name', 'text')
      .addColumn('depth', 'bigint', (column) => column.notNull())
      .addColumn('priority', 'integer', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('acquired', 'bigint', (column) => column.notNull())
      .addColumn('line', 'bigint')
      .addColumn('expires_at', 'timestamptz')
      .addColumn('epoch', 'bigint', (column) => column.notNull())
      .addColumn('acquired_at', 'timestamptz', (column) => column.notNull())
      .addPrimaryKeyConstraint('members_key', ['tenant', 'run_id', 'instance'])
      .execute();
    await db.schema
      .createIndex('members_live')
      .on('members')
      .columns(['tenant', 'run_id'])
      .where(sql.ref('state'), '!=', sql.lit('released'))
      .execute();
    await db.schema
      .createIndex('members_expiring')
      .on('members')
      .column('expires_at')
      .where(sql.ref('expires_at'), 'is not', null)
      .execute();
  },
};

const requests: Migration = {
  async up(db) {
    await db.schema
      .createTable('requests')
      .addColumn('tenant', 'text', (column) => column.notNull())
      .addColumn('run_id', 'text', (column) => column.notNull())
      .addColumn('instance', 'text', (column) => column.notNull())
      .addColumn('rpc', 'text', (column) => column.notNull())
      .addColumn('request_id', 'text', (column) => column.notNull())
      .addColumn('digest', 'text', (column) => column.notNull())
      .addColumn('answer', 'text', (column) => column.notNull())
      .addColumn('answered_at', 'timestamptz', (column) => column.notNull())
      .addPrimaryKeyConstraint('requests_key', [
        'tenant',
        'run_id',
        'instance',
        'rpc',
        'request_id',
      ])
      .execute();
  },
};

/** Every migration of spawn-budget's store, in the order of names. */
export const spawnMigrations: Migrations = {
  '0001_outbox': outboxMigration,
  '0002_pools': pools,
  '0003_members': members,
  '0004_requests': requests,
};
