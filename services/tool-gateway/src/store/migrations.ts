import { freezesTable } from '@writ/freeze';
import { addPosition, type Migrations, outboxMigration, slotLeasesMigration } from '@writ/store';
import { type CreateTableBuilder, type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

type Columns = Readonly<Record<string, 'text' | 'integer' | 'bigint' | 'boolean' | 'timestamptz'>>;

const CALL_KEY = {
  tenant: 'text',
  run_id: 'text',
  agent_instance: 'text',
  call_id: 'text',
} as const;

const tables: Migration = {
  async up(db) {
    await keyed(
      db,
      'calls',
      CALL_KEY,
      {
        agent_name: 'text',
        session_id: 'text',
        step: 'integer',
        tool: 'text',
        args_sha256: 'text',
        writ_id: 'text',
        definition_digest: 'text',
        registry_version: 'text',
        result_fields: 'text',
        traceparent: 'text',
        state: 'text',
        attempts: 'integer',
        started_at: 'timestamptz',
        stop_reason: 'text',
        message: 'text',
        result_media_type: 'text',
        result_truncated: 'boolean',
        result_full_size: 'integer',
        result_full_sha256: 'text',
        revision: 'integer',
      },
      {
        side_effect: 'text',
        ended_at: 'timestamptz',
        duration_ms: 'integer',
        result_kind: 'text',
        result_content: 'text',
        receipt: 'text',
        resolve_request_id: 'text',
        resolve_digest: 'text',
        resolved_by: 'text',
        resolved_at: 'timestamptz',
      },
    );
    await db.schema
      .createIndex('calls_without_outcome')
      .on('calls')
      .column('started_at')
      .where(sql.ref('state'), '=', sql.lit('intent'))
      .execute();
    await keyed(
      db,
      'counters',
      { tenant: 'text', run_id: 'text', agent_instance: 'text', tool: 'text', args_hash: 'text' },
      { calls: 'integer' },
    );
    await keyed(
      db,
      'epochs',
      { tenant: 'text', run_id: 'text', agent_instance: 'text' },
      { epoch: 'bigint' },
    );
    await freezesTable.create(db);
    await add(addPosition(db, db.schema.createTable('receipts')), {
      ...CALL_KEY,
      receipt_id: 'text',
      revision: 'integer',
      token: 'text',
      created_at: 'timestamptz',
    })
      .addColumn('acknowledged_at', 'timestamptz')
      .addUniqueConstraint('receipts_id', ['receipt_id'])
      .addUniqueConstraint('receipts_call', [...Object.keys(CALL_KEY), 'revision'])
      .execute();
    await db.schema
      .createIndex('receipts_pending')
      .on('receipts')
      .column('position')
      .where(sql.ref('acknowledged_at'), 'is', null)
      .execute();
    await add(addPosition(db, db.schema.createTable('refusals')), {
      ...CALL_KEY,
      tool: 'text',
      reason: 'text',
      field: 'text',
      writ_id: 'text',
      replica: 'text',
      refused_at: 'timestamptz',
    }).execute();
  },
};

const notes: Migration = {
  async up(db) {
    await keyed(
      db,
      'notes',
      { tenant: 'text', run_id: 'text', name: 'text' },
      { text: 'text', size_bytes: 'integer', written_at: 'timestamptz' },
    );
  },
};

const repetitions: Migration = {
  async up(db) {
    await db.schema.alterTable('counters').addColumn('last_call_id', 'text').execute();
    await db.schema.alterTable('calls').addColumn('repetition', 'text').execute();
  },
};

const refusedAttempts: Migration = {
  async up(db) {
    await db.schema.dropTable('refusals').execute();
    await add(addPosition(db, db.schema.createTable('refusals')), {
      refusal_id: 'text',
      ...CALL_KEY,
      reason: 'text',
      field: 'text',
      writ_sha256: 'text',
      presented_by: 'text',
      refused_at: 'timestamptz',
    })
      .addUniqueConstraint('refusals_id', ['refusal_id'])
      .execute();
  },
};

/** Adds the replica that works on a call. */
const owners: Migrations[string] = {
  async up(db) {
    await db.schema
      .alterTable('calls')
      .addColumn('owner', 'text', (column) => column.notNull().defaultTo(''))
      .execute();
  },
};

/** Every migration of the tool gateway's store, ordered by name. */
export const gatewayMigrations: Migrations = {
  '0001_outbox': outboxMigration,
  '0002_calls': tables,
  '0003_notes': notes,
  '0004_repetitions': repetitions,
  '0005_refused_attempts': refusedAttempts,
  '0006_owners': owners,
  '0007_slot_leases': slotLeasesMigration,
};

/** Creates a table with a primary key; only the columns in `nullable` may be null. */
async function keyed(
  db: Kysely<unknown>,
  name: string,
  key: Columns,
  columns: Columns,
  nullable: Columns = {},
): Promise<void> {
  let builder = add(db.schema.createTable(name), { ...key, ...columns });
  for (const [column, type] of Object.entries(nullable)) builder = builder.addColumn(column, type);
  await builder.addPrimaryKeyConstraint(`${name}_key`, Object.keys(key)).execute();
}

function add(
  table: CreateTableBuilder<string, string>,
  columns: Columns,
): CreateTableBuilder<string, string> {
  let builder = table;
  for (const [name, type] of Object.entries(columns)) {
    builder = builder.addColumn(name, type, (column) => column.notNull());
  }
  return builder;
}
