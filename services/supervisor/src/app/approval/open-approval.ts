import { derivedId } from '@writ/kernel';
import type { Tx } from '../../context.ts';
import { actionFacts } from '../../domain/audit/audit-facts.ts';
import { isCall, type RecordedAction } from '../../domain/result/recorded-action.ts';
import { type ApprovalRow, insertApproval } from '../../store/approval/approvals.ts';
import { appendAudit } from '../../store/audit/append-audit.ts';
import type { ReviewSubject } from '../review/review-subject.ts';

/** The content of an approval request. */
export interface Question {
  readonly kind: ApprovalRow['kind'];
  readonly callId: string;
  readonly step: number;
  readonly action: RecordedAction;
  readonly reason: string;
  readonly ruleId: string;
  /** 0 to 1. */
  readonly risk: number;
  readonly policyVersion: string;
}

/** Returns the id of the approval of a kind for a call. */
export function approvalIdOf(
  { key }: ReviewSubject,
  kind: ApprovalRow['kind'],
  callId: string,
): string {
  return derivedId('apr', key.tenant, key.runId, key.instance, callId, kind);
}

/** Opens an approval with its audit record and hook event (SV-5, HK-1). Returns its id. */
export async function openApproval(
  { trx, at, context: { config, events } }: Tx,
  subject: ReviewSubject,
  question: Question,
): Promise<string> {
  const { key, run, ref } = subject;
  const { kind, callId, step, action, reason } = question;
  const approvalId = approvalIdOf(subject, kind, callId);
  const tool = isCall(action) ? action.name : '';
  const { approvalTtlMs } = config;
  const expiresAt = approvalTtlMs === undefined ? null : new Date(at.getTime() + approvalTtlMs);
  await insertApproval(trx, {
    approval_id: approvalId,
    tenant: key.tenant,
    run_id: key.runId,
    instance: key.instance,
    agent_name: ref.name,
    call_id: callId,
    step,
    kind,
    state: 'pending',
    action: JSON.stringify(action),
    tool,
    reason,
    rule_id: question.ruleId,
    risk: question.risk,
    policy_version: question.policyVersion,
    run_created_by: run.created_by,
    created_at: at,
    expires_at: expiresAt,
    decided_by: null,
    decided_at: null,
    comment: null,
    basis: null,
    approved: null,
    executed_action: null,
    request_id: null,
    request_digest: null,
  });
  const facts = {
    approval_id: approvalId,
    asked: kind,
    state: 'pending',
    reason,
    rule: question.ruleId,
    risk: question.risk,
    policy_version: question.policyVersion,
    expire_time: expiresAt?.toISOString(),
    ...actionFacts('action', action),
  };
  await appendAudit(trx, { ...key, kind: 'approval', callId, facts }, at);
  await events.approvalRequested(
    trx,
    { run, agent: ref, step, callId },
    { approvalId, reason, toolName: tool },
    at,
  );
  return approvalId;
}
