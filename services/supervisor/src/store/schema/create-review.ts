import { addPosition } from '@writ/store';
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import { createTable, withColumns } from './create-table.ts';

/** Facts, decisions, receipts, approvals and audit records. */
export const reviewTables: Migration = {
  async up(db) {
    await createTable(db, 'facts', { tenant: 'text', run_id: 'text', state: 'text' }, [
      'tenant',
      'run_id',
    ]);

    await createTable(
      db,
      'decisions',
      {
        tenant: 'text',
        run_id: 'text',
        instance: 'text',
        call_id: 'text',
        decision_id: 'text',
        sequence: 'integer',
        proposal_digest: 'text',
        model_call_id: 'text',
        step: 'integer',
        composed: 'boolean',
        partial: 'boolean',
        verdict: 'text',
        reason: 'text',
        rule_id: 'text',
        risk: 'real',
        policy_version: 'text',
        raw_text: 'text?',
        action: 'text?',
        revised_action: 'text?',
        executed_action: 'text?',
        executed_from: 'text?',
        approval_id: 'text?',
        stop_reason: 'text?',
        phase: 'text?',
        settled: 'boolean',
        run_ended: 'boolean',
        definition_digest: 'text?',
        args_sha256: 'text?',
        writ_count: 'integer',
        last_writ_id: 'text?',
        last_writ_expires_at: 'timestamptz?',
        facts_before: 'text?',
        facts_after: 'text?',
        decided_at: 'timestamptz',
        latency_us: 'integer',
      },
      ['tenant', 'run_id', 'instance', 'call_id'],
      { decisions_id: ['decision_id'] },
    );

    await createTable(
      db,
      'receipts',
      {
        tenant: 'text',
        run_id: 'text',
        instance: 'text',
        call_id: 'text',
        revision: 'integer',
        receipt_id: 'text',
        status: 'text',
        stop_reason: 'text?',
        result_sha256: 'text?',
        claims: 'text',
        observation: 'text?',
        received_at: 'timestamptz',
      },
      ['tenant', 'run_id', 'instance', 'call_id', 'revision'],
      { receipts_id: ['receipt_id'] },
    );

    await createTable(
      db,
      'approvals',
      {
        approval_id: 'text',
        tenant: 'text',
        run_id: 'text',
        instance: 'text',
        agent_name: 'text',
        call_id: 'text',
        step: 'integer',
        kind: 'text',
        state: 'text',
        action: 'text',
        tool: 'text',
        reason: 'text',
        rule_id: 'text',
        risk: 'real',
        policy_version: 'text',
        run_created_by: 'text',
        created_at: 'timestamptz',
        expires_at: 'timestamptz?',
        decided_by: 'text?',
        decided_at: 'timestamptz?',
        comment: 'text?',
        approved: 'boolean?',
        executed_action: 'text?',
        request_id: 'text?',
        request_digest: 'text?',
      },
      ['approval_id'],
      { approvals_call: ['tenant', 'run_id', 'instance', 'call_id', 'kind'] },
    );
    await db.schema
      .createIndex('approvals_by_time')
      .on('approvals')
      .columns(['tenant', 'created_at', 'approval_id'])
      .execute();
    await db.schema
      .createIndex('approvals_expiring')
      .on('approvals')
      .column('expires_at')
      .where(sql.ref('state'), '=', sql.lit('pending'))
      .execute();

    await withColumns(addPosition(db, db.schema.createTable('audit')), {
      tenant: 'text',
      recorded_at: 'timestamptz',
      kind: 'text',
      run_id: 'text',
      instance: 'text',
      call_id: 'text',
      canonical_json: 'text',
      sequence: 'integer?',
      previous_hash: 'text?',
      hash: 'text?',
    })
      .addUniqueConstraint('audit_chain', ['tenant', 'sequence'])
      .execute();
  },
};
