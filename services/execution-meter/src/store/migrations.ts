import { freezesTable } from '@writ/freeze';
import { type Migrations, outboxMigration, slotLeasesMigration } from '@writ/store';
import { type CreateTableBuilder, type Kysely, sql } from 'kysely';

/** All schema migrations by name. */
export const migrations: Migrations = {
  '0001_outbox': outboxMigration,
  '0002_ledger': {
    async up(db) {
      await createTabs(db);
      await createBalances(db);
      await createEntries(db);
      await createCalls(db);
      await createFailures(db);
      await freezesTable.create(db);
    },
  },
  '0003_slot_leases': slotLeasesMigration,
  '0004_owners': {
    async up(db) {
      await db.schema
        .alterTable('calls')
        .addColumn('owner', 'text', (column) => column.notNull().defaultTo(''))
        .execute();
    },
  },
};

const AGENT = ['tenant', 'run_id', 'agent_instance'] as const;

const SUMS = [
  'used_tokens',
  'used_cost',
  'used_turns',
  'reserved_tokens',
  'reserved_cost',
  'reserved_turns',
  'debt_tokens',
  'debt_cost',
  'debt_turns',
  'estimated_turns',
  'failed_calls',
] as const;

const USAGE = ['input_tokens', 'cached_input_tokens', 'output_tokens', 'reasoning_tokens'] as const;

type Table = CreateTableBuilder<string, string>;

function columns(
  table: Table,
  type: 'text' | 'integer' | 'bigint' | 'boolean' | 'timestamptz',
  ...names: readonly string[]
): Table {
  return names.reduce((built, name) => built.addColumn(name, type, (c) => c.notNull()), table);
}

async function createTabs(db: Kysely<unknown>): Promise<void> {
  let table: Table = db.schema.createTable('tabs');
  table = columns(table, 'text', ...AGENT, 'agent_name', 'session_id', 'state', 'models');
  table = columns(table, 'text', 'retention', 'request_id', 'request_digest');
  table = columns(table, 'bigint', 'reserve_tokens', 'reserve_cost_ppm');
  table = columns(table, 'integer', 'priority');
  table = columns(table, 'timestamptz', 'opened_at');
  await table
    .addColumn('parent_name', 'text')
    .addColumn('parent_instance', 'text')
    .addColumn('deadline_at', 'timestamptz')
    .addColumn('epoch', 'bigint')
    .addColumn('closed_at', 'timestamptz')
    .addPrimaryKeyConstraint('tabs_key', [...AGENT])
    .execute();
}

async function createBalances(db: Kysely<unknown>): Promise<void> {
  const table: Table = db.schema
    .createTable('balances')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('cap_tokens', 'bigint')
    .addColumn('cap_cost', 'bigint')
    .addColumn('cap_turns', 'bigint');
  await [...SUMS, ...USAGE]
    .reduce(
      (built: Table, name) => built.addColumn(name, 'bigint', (c) => c.notNull().defaultTo(0)),
      table,
    )
    .execute();
}

async function createEntries(db: Kysely<unknown>): Promise<void> {
  let table: Table = db.schema.createTable('entries');
  table = columns(table, 'text', ...AGENT, 'kind', 'call_id', 'session_id', 'agent_name');
  table = columns(table, 'text', 'model', 'day', 'state', 'request_digest');
  table = columns(table, 'integer', 'attempt');
  table = columns(table, 'bigint', 'held_input', 'held_output', 'held_cost', 'held_turns');
  table = columns(table, 'bigint', ...USAGE, 'cost', 'turns');
  table = columns(table, 'boolean', 'estimated', 'failed', 'exceeded', 'by_expiry');
  table = columns(table, 'timestamptz', 'created_at');
  await table
    .addColumn('settle_digest', 'text')
    .addColumn('expires_at', 'timestamptz')
    .addColumn('ended_at', 'timestamptz')
    .addPrimaryKeyConstraint('entries_key', [...AGENT, 'kind', 'call_id', 'attempt'])
    .execute();
  await db.schema
    .createIndex('entries_holding')
    .on('entries')
    .column('expires_at')
    .where(sql.ref('state'), 'in', ['reserved', 'sent'])
    .execute();
  await db.schema
    .createIndex('entries_by_time')
    .on('entries')
    .columns(['tenant', 'ended_at'])
    .execute();
}

async function createCalls(db: Kysely<unknown>): Promise<void> {
  let table: Table = db.schema.createTable('calls');
  table = columns(table, 'text', ...AGENT, 'call_id', 'request_digest', 'model', 'state');
  table = columns(table, 'text', 'warnings', 'traceparent');
  table = columns(table, 'integer', 'step', 'attempts');
  table = columns(table, 'bigint', ...USAGE, 'cost', 'fitted_output');
  table = columns(table, 'boolean', 'estimated', 'purged');
  table = columns(table, 'timestamptz', 'started_at');
  await table
    .addColumn('answer', 'text')
    .addColumn('failure', 'text')
    .addColumn('ended_at', 'timestamptz')
    .addPrimaryKeyConstraint('calls_key', [...AGENT, 'call_id'])
    .execute();
}

async function createFailures(db: Kysely<unknown>): Promise<void> {
  let table: Table = db.schema.createTable('failures');
  table = columns(table, 'text', ...AGENT, 'stop_reason', 'last_call_id');
  table = columns(table, 'integer', 'count');
  await table.addPrimaryKeyConstraint('failures_key', [...AGENT, 'stop_reason']).execute();
}
