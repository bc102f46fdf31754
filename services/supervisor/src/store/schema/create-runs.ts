import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import { createTable } from './create-table.ts';

/** Runs, agents, timelines and orders. */
export const runTables: Migration = {
  async up(db) {
    await createTable(
      db,
      'runs',
      {
        tenant: 'text',
        run_id: 'text',
        request_id: 'text',
        request_digest: 'text',
        session_id: 'text',
        agent_name: 'text',
        root_instance: 'text',
        goal: 'text',
        data_json: 'text',
        state: 'text',
        created_by: 'text',
        created_at: 'timestamptz',
        deadline_at: 'timestamptz?',
        run_budget: 'text',
        spawn_budget: 'text',
        priority: 'text',
        retention: 'text',
        labels: 'text',
        trace_id: 'text',
        traceparent: 'text',
        definition_hash: 'text',
        model: 'text',
        usage: 'text?',
        result: 'text?',
        ended_at: 'timestamptz?',
      },
      ['tenant', 'run_id'],
      { runs_request: ['tenant', 'created_by', 'request_id'] },
    );
    await db.schema
      .createIndex('runs_by_time')
      .on('runs')
      .columns(['tenant', 'created_at', 'run_id'])
      .execute();
    await db.schema
      .createIndex('runs_alive')
      .on('runs')
      .column('deadline_at')
      .where(sql.ref('ended_at'), 'is', null)
      .execute();

    await createTable(
      db,
      'run_labels',
      { tenant: 'text', run_id: 'text', label: 'text', value: 'text' },
      ['tenant', 'label', 'value', 'run_id'],
    );

    await createTable(
      db,
      'sessions',
      { tenant: 'text', session_id: 'text', created_by: 'text', created_at: 'timestamptz' },
      ['tenant', 'session_id'],
    );

    await createTable(
      db,
      'agents',
      {
        tenant: 'text',
        run_id: 'text',
        instance: 'text',
        name: 'text',
        parent_instance: 'text?',
        parent_name: 'text?',
        depth: 'integer',
        manifest: 'text',
        definition_hash: 'text',
        execution_budget: 'text',
        priority: 'text',
        retention: 'text',
        tools: 'text',
        models: 'text',
        state: 'text',
        epoch: 'bigint',
        steps: 'integer',
        active_ms: 'integer',
        active_since: 'timestamptz?',
        last_seen_at: 'timestamptz?',
        waiting_since: 'timestamptz?',
        ending_stop_reason: 'text?',
        ending_phase: 'text?',
        ending_call_id: 'text?',
        ending_answer: 'text?',
        ending_detail: 'text?',
        ending_unverified: 'boolean',
        ended_at: 'timestamptz?',
        tab: 'text?',
      },
      ['tenant', 'run_id', 'instance'],
    );
    await db.schema
      .createIndex('agents_active')
      .on('agents')
      .column('active_since')
      .where(sql.ref('active_since'), 'is not', null)
      .execute();

    await createTable(
      db,
      'timeline',
      {
        tenant: 'text',
        run_id: 'text',
        sequence: 'integer',
        event_id: 'text',
        recorded_at: 'timestamptz',
        entry: 'bytea',
      },
      ['tenant', 'run_id', 'sequence'],
      { timeline_event: ['tenant', 'run_id', 'event_id'] },
    );

    await createTable(
      db,
      'orders',
      {
        order_id: 'text',
        kind: 'text',
        tenant: 'text',
        run_id: 'text',
        payload: 'text',
        step: 'text',
        state: 'text',
        attempts: 'integer',
        next_attempt_at: 'timestamptz',
        last_error: 'text?',
        created_at: 'timestamptz',
      },
      ['order_id'],
    );
    await db.schema
      .createIndex('orders_open')
      .on('orders')
      .column('next_attempt_at')
      .where(sql.ref('state'), '=', sql.lit('open'))
      .execute();

    await createTable(
      db,
      'requests',
      {
        tenant: 'text',
        subject: 'text',
        method: 'text',
        request_id: 'text',
        digest: 'text',
        recorded_at: 'timestamptz',
      },
      ['tenant', 'subject', 'method', 'request_id'],
    );
  },
};
