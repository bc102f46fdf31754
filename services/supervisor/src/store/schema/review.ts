import type { ExecutedFrom, Phase, Verdict } from '@writ/kernel';
import { column, table } from '@writ/store';

/** One row for each run: its current facts (SV-3). */
export const facts = table('facts', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    /** JSON. */
    state: column.text(),
  },
  primaryKey: ['tenant', 'run_id'],
});

/** One row for each proposal, unique on tenant, run, agent and call (SV-1). Actions are JSON. */
export const decisions = table('decisions', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    call_id: column.text(),
    decision_id: column.text(),
    /** Sequence of its first timeline entry, which gives the order of decisions. */
    sequence: column.integer(),
    /** Digest of the proposal without receipts, so that a reused call_id is detected. */
    proposal_digest: column.text(),
    model_call_id: column.text(),
    /** From 1; zero for a composed final. */
    step: column.integer(),
    composed: column.boolean(),
    partial: column.boolean(),
    verdict: column.text<Verdict>(),
    reason: column.text(),
    rule_id: column.text(),
    /** 0 to 1. */
    risk: column.real(),
    policy_version: column.text(),
    /**
     * The model's text if it was the proposal, or the raw value of any other invalid proposal as JSON; null otherwise.
     */
    raw_text: column.text().nullable(),
    /** Null when the proposal was not parsed, or is not a valid action. */
    action: column.text().nullable(),
    revised_action: column.text().nullable(),
    executed_action: column.text().nullable(),
    executed_from: column.text<ExecutedFrom>().nullable(),
    /** Whether the action is a delegation or a call of a tool that is not read-only. */
    has_effect: column.boolean(),
    approval_id: column.text().nullable(),
    /** Why the action is not executed; null when it is approved, or its approval is pending. */
    stop_reason: column.text().nullable(),
    phase: column.text<Phase>().nullable(),
    /** False only while an approval is pending. */
    settled: column.boolean(),
    /** Whether the action is an approved final that ended the agent. */
    run_ended: column.boolean(),
    /**
     * The digest of the reviewed definition of the tool, and the digest of the argument bytes that a writ signs. For a
     * tool that the program of an external agent executes, the definition digest is the unverified value that the
     * program sent.
     */
    definition_digest: column.text().nullable(),
    args_sha256: column.text().nullable(),
    writ_count: column.integer(),
    last_writ_id: column.text().nullable(),
    last_writ_expires_at: column.timestamp().nullable(),
    /** JSON. */
    facts_before: column.text().nullable(),
    facts_after: column.text().nullable(),
    decided_at: column.timestamp(),
    latency_us: column.integer(),
  },
  primaryKey: ['tenant', 'run_id', 'instance', 'call_id'],
  unique: { decisions_id: ['decision_id'] },
});

/** One row for each receipt; the highest revision of a call counts (TG-8). */
export const receipts = table('receipts', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    call_id: column.text(),
    revision: column.integer(),
    receipt_id: column.text(),
    status: column.text<'ok' | 'error' | 'refused' | 'unknown' | 'void'>(),
    /** Whether the call achieved its purpose, according to the policy; null when it was not executed. */
    outcome: column.text<'ok' | 'failed' | 'unknown'>().nullable(),
    /** Null after a success. */
    stop_reason: column.text().nullable(),
    /** Null without a result. */
    result_sha256: column.text().nullable(),
    /** The claims as JSON. */
    claims: column.text(),
    /** The content that the digest of the receipt covers; null until a worker sends it. */
    observation: column.text().nullable(),
    received_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'run_id', 'instance', 'call_id', 'revision'],
  unique: { receipts_id: ['receipt_id'] },
});

/** One row for each approval (SV-5). */
export const approvals = table('approvals', {
  columns: {
    approval_id: column.text(),
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    agent_name: column.text(),
    call_id: column.text(),
    step: column.integer(),
    kind: column.text<'action' | 'resolve'>(),
    state: column.text<
      'pending' | 'approved' | 'rejected' | 'expired' | 'withdrawn' | 'resolved'
    >(),
    /** JSON, after revision by policy. */
    action: column.text(),
    /** Empty when the action is not a tool call. */
    tool: column.text(),
    reason: column.text(),
    rule_id: column.text(),
    risk: column.real(),
    policy_version: column.text(),
    run_created_by: column.text(),
    created_at: column.timestamp(),
    expires_at: column.timestamp().nullable(),
    decided_by: column.text().nullable(),
    decided_at: column.timestamp().nullable(),
    /** What the approver wrote; empty when they wrote nothing, null without an answer and after the purge. */
    comment: column.text().nullable(),
    /**
     * `approved_by_human` or `approved_with_cap:<n>` of an approved action, `withdrawn_by_agent` when the agent
     * withdrew its proposal; null otherwise.
     */
    basis: column.text().nullable(),
    approved: column.boolean().nullable(),
    executed_action: column.text().nullable(),
    /** The deciding request, for idempotency. */
    request_id: column.text().nullable(),
    request_digest: column.text().nullable(),
  },
  primaryKey: ['approval_id'],
  unique: { approvals_call: ['tenant', 'run_id', 'instance', 'call_id', 'kind'] },
  indexes: {
    approvals_by_time: { on: ['tenant', 'created_at', 'approval_id'] },
    approvals_pending: { on: ['tenant'], where: ['state', '=', 'pending'] },
    approvals_closed: { on: ['tenant', 'decided_at'], where: ['decided_at', 'is not', null] },
    approvals_expiring: { on: ['expires_at'], where: ['state', '=', 'pending'] },
  },
});
