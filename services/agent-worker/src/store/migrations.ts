import { addPosition, type Migrations, outboxMigration } from '@writ/store';
import { type CreateTableBuilder, type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import { aliveIndex } from './alive-migration.ts';
import { inactiveAgentIndexes } from './inactive-agents-migration.ts';
import { rateLimitTables } from './rate-limit-tables.ts';

type ColumnType = 'text' | 'integer' | 'bigint' | 'timestamptz';

/** Column types by name; a question mark marks a nullable column. */
type Columns = Readonly<Record<string, ColumnType | `${ColumnType}?`>>;

const OF_AGENT = { tenant: 'text', run_id: 'text', instance: 'text' } as const;

function withColumns<TB extends string, C extends string>(
  table: CreateTableBuilder<TB, C>,
  columns: Columns,
): CreateTableBuilder<TB, string> {
  let builder: CreateTableBuilder<TB, string> = table;
  for (const [name, kind] of Object.entries(columns)) {
    const type = kind.replace('?', '') as ColumnType;
    builder = builder.addColumn(name, type, (column) =>
      kind.endsWith('?') ? column : column.notNull(),
    );
  }
  return builder;
}

async function keyed(db: Kysely<unknown>, name: string, columns: Columns, key: readonly string[]) {
  await withColumns(db.schema.createTable(name), columns)
    .addPrimaryKeyConstraint(`${name}_key`, [...key])
    .execute();
}

async function ordered(
  db: Kysely<unknown>,
  name: string,
  columns: Columns,
  unique: readonly string[],
) {
  await withColumns(addPosition(db, db.schema.createTable(name)), columns)
    .addUniqueConstraint(`${name}_id`, [...unique])
    .execute();
}

const workerTables: Migration = {
  async up(db) {
    await keyed(
      db,
      'agents',
      {
        ...OF_AGENT,
        name: 'text',
        kind: 'text',
        request_id: 'text',
        request_digest: 'text',
        session_id: 'text',
        manifest: 'text',
        supervision: 'text',
        state: 'text',
        stop_reason: 'text?',
        waiting_for: 'text',
        wake_at: 'timestamptz?',
        epoch: 'bigint',
        lease_owner: 'text?',
        lease_expires_at: 'timestamptz?',
        credentials: 'text?',
        slot_grant: 'text',
        deadline_at: 'timestamptz?',
        traceparent: 'text',
        last_traceparent: 'text?',
        journal_length: 'integer',
        step_started: 'integer',
        step_ended: 'integer',
        failures: 'integer',
        created_at: 'timestamptz',
        ended_at: 'timestamptz?',
      },
      ['tenant', 'run_id', 'instance'],
    );
    await db.schema
      .createIndex('agents_running')
      .on('agents')
      .columns(['lease_expires_at', 'created_at'])
      .where(sql.ref('state'), '=', sql.lit('RUNNING'))
      .execute();
    await db.schema
      .createIndex('agents_timed')
      .on('agents')
      .column('wake_at')
      .where(sql.ref('wake_at'), 'is not', null)
      .execute();
    await db.schema
      .createIndex('agents_leased')
      .on('agents')
      .column('lease_owner')
      .where(sql.ref('lease_owner'), 'is not', null)
      .execute();
    await ordered(
      db,
      'inbox',
      { ...OF_AGENT, message_id: 'text', message: 'text', received_at: 'timestamptz' },
      ['tenant', 'run_id', 'instance', 'message_id'],
    );
    await ordered(
      db,
      'signals',
      {
        ...OF_AGENT,
        request_id: 'text',
        request_digest: 'text',
        name: 'text',
        payload: 'text',
        decision: 'text?',
        received_at: 'timestamptz',
        consumed_at: 'timestamptz?',
      },
      ['tenant', 'run_id', 'instance', 'request_id'],
    );
    await keyed(
      db,
      'journal',
      {
        ...OF_AGENT,
        position: 'integer',
        part: 'integer',
        kind: 'text',
        args_digest: 'text',
        call_id: 'text',
        epoch: 'bigint',
        value: 'text?',
        payload_digest: 'text?',
        recorded_at: 'timestamptz',
      },
      ['tenant', 'run_id', 'instance', 'position', 'part'],
    );
    await keyed(
      db,
      'payloads',
      { tenant: 'text', run_id: 'text', digest: 'text', content: 'text' },
      ['tenant', 'run_id', 'digest'],
    );
    await keyed(
      db,
      'cancels',
      {
        tenant: 'text',
        run_id: 'text',
        request_id: 'text',
        instance: 'text',
        stop_reason: 'text',
        retention: 'text',
        ended: 'integer',
        cancelled_at: 'timestamptz',
      },
      ['tenant', 'run_id', 'request_id'],
    );
  },
};

/** Grants are renewed with every lease and not stored; preempted agents are polled. */
const slots: Migration = {
  async up(db) {
    await db.schema.alterTable('agents').dropColumn('slot_grant').execute();
    await db.schema
      .createIndex('agents_parked')
      .on('agents')
      .column('wake_at')
      .where(sql.ref('state'), '=', sql.lit('PARKED'))
      .execute();
  },
};

/** Branches have their own positions; a primary key cannot be altered in place. */
const branches: Migration = {
  async up(db) {
    await keyed(
      db,
      'journal_by_branch',
      {
        ...OF_AGENT,
        branch: 'text',
        position: 'integer',
        part: 'integer',
        kind: 'text',
        args_digest: 'text',
        call_id: 'text',
        epoch: 'bigint',
        value: 'text?',
        payload_digest: 'text?',
        recorded_at: 'timestamptz',
      },
      ['tenant', 'run_id', 'instance', 'branch', 'position', 'part'],
    );
    const before = sql`tenant, run_id, instance, position, part, kind, args_digest, call_id, epoch, value, payload_digest, recorded_at`;
    await sql`insert into journal_by_branch (branch, ${before}) select '', ${before} from journal`.execute(
      db,
    );
    await db.schema.dropTable('journal').execute();
    await db.schema.alterTable('journal_by_branch').renameTo('journal').execute();
  },
};

/** Replies, timers and topics. */
const messages: Migration = {
  async up(db) {
    await db.schema.alterTable('agents').addColumn('reply_to', 'text').execute();
    await keyed(
      db,
      'timers',
      {
        ...OF_AGENT,
        timer_id: 'text',
        name: 'text',
        payload: 'text',
        due_at: 'timestamptz?',
        remaining_ms: 'bigint?',
        waits_with: 'text?',
      },
      ['tenant', 'run_id', 'instance', 'timer_id'],
    );
    await db.schema
      .createIndex('timers_due')
      .on('timers')
      .column('due_at')
      .where(sql.ref('due_at'), 'is not', null)
      .execute();
    await keyed(
      db,
      'follows',
      {
        tenant: 'text',
        topic: 'text',
        run_id: 'text',
        instance: 'text',
        followed_at: 'timestamptz',
      },
      ['tenant', 'topic', 'run_id', 'instance'],
    );
  },
};

/** Conversations of earlier runs of a session (AG-8). */
const history: Migration = {
  async up(db) {
    await keyed(
      db,
      'history',
      {
        tenant: 'text',
        session_id: 'text',
        agent: 'text',
        run_id: 'text',
        position: 'integer',
        turn: 'text',
        kept_at: 'timestamptz',
      },
      ['tenant', 'session_id', 'agent', 'kept_at', 'run_id', 'position'],
    );
  },
};

/**
 * The journal is read from the snapshot on; a primary key cannot be altered in place. The index
 * skips consumed signals.
 */
const snapshots: Migration = {
  async up(db) {
    await keyed(
      db,
      'journal_by_segment',
      {
        ...OF_AGENT,
        segment: 'integer',
        branch: 'text',
        position: 'integer',
        part: 'integer',
        kind: 'text',
        args_digest: 'text',
        call_id: 'text',
        epoch: 'bigint',
        value: 'text?',
        payload_digest: 'text?',
        recorded_at: 'timestamptz',
      },
      ['tenant', 'run_id', 'instance', 'segment', 'branch', 'position', 'part'],
    );
    const before = sql`tenant, run_id, instance, branch, position, part, kind, args_digest, call_id, epoch, value, payload_digest, recorded_at`;
    await sql`insert into journal_by_segment (segment, ${before}) select 0, ${before} from journal`.execute(
      db,
    );
    await db.schema.dropTable('journal').execute();
    await db.schema.alterTable('journal_by_segment').renameTo('journal').execute();
    await keyed(
      db,
      'snapshots',
      {
        ...OF_AGENT,
        segment: 'integer',
        prologue: 'integer',
        position: 'integer',
        items: 'integer',
        items_from: 'integer',
        state: 'text',
        receipts: 'text',
        saved_at: 'timestamptz',
      },
      ['tenant', 'run_id', 'instance'],
    );
    await keyed(db, 'snapshot_items', { ...OF_AGENT, position: 'integer', items: 'text' }, [
      'tenant',
      'run_id',
      'instance',
      'position',
    ]);
    await db.schema
      .createIndex('signals_pending')
      .on('signals')
      .columns(['tenant', 'run_id', 'instance', 'name', 'position'])
      .where(sql.ref('consumed_at'), 'is', null)
      .execute();
  },
};

/** Failures count from the latest progress, and a partial final is repeated after a crash. */
const partialFinals: Migration = {
  async up(db) {
    await db.schema
      .alterTable('agents')
      .addColumn('failed_length', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    await db.schema.alterTable('agents').addColumn('partial_final', 'text').execute();
  },
};

/** Log entries are read by time, among the entries of a run's journals. */
const logEntryIndex: Migration = {
  async up(db) {
    await db.schema
      .createIndex('journal_logs')
      .on('journal')
      .columns(['tenant', 'run_id', 'recorded_at', 'instance', 'branch', 'position'])
      .where(sql.ref('kind'), '=', sql.lit('log'))
      .execute();
  },
};

/** An agent finishes on the version of the code with which it started. */
const codeVersions: Migration = {
  async up(db) {
    await db.schema
      .alterTable('agents')
      .addColumn('code_version', 'text', (column) => column.notNull().defaultTo(''))
      .execute();
  },
};

/** Durable subscriptions are found by agent name and session (AG-5). */
const durableFollows: Migration = {
  async up(db) {
    for (const column of ['session_id', 'agent']) {
      await db.schema.alterTable('follows').addColumn(column, 'text').execute();
    }
    await db.schema
      .createIndex('follows_durable')
      .on('follows')
      .columns(['tenant', 'session_id', 'agent', 'topic'])
      .where(sql.ref('agent'), 'is not', null)
      .execute();
  },
};

/** The migrations of the worker's store. */
export const workerMigrations: Migrations = {
  '0001_outbox': outboxMigration,
  '0002_agents': workerTables,
  '0003_slots': slots,
  '0004_branches': branches,
  '0005_messages': messages,
  '0006_history': history,
  '0007_snapshots': snapshots,
  '0008_alive': aliveIndex,
  '0009_resting': inactiveAgentIndexes,
  '0010_partial_finals': partialFinals,
  '0011_rate_limits': rateLimitTables,
  '0012_log_entries': logEntryIndex,
  '0013_unreported_events': {
    async up(db) {
      await db.schema
        .alterTable('agents')
        .addColumn('unreported_events', 'text', (column) => column.notNull().defaultTo('[]'))
        .execute();
    },
  },
  '0014_code_versions': codeVersions,
  '0015_durable_follows': durableFollows,
};
