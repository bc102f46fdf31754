import { derivedId } from '@writ/kernel';
import type { Tx } from '../../context.ts';
import { receiptFacts } from '../../domain/audit/audit-facts.ts';
import { type ApprovedCall, matchesCall, type Receipt } from '../../domain/facts/receipt.ts';
import { outcomeOfReceipt, settleReceipt } from '../../domain/facts/settle-receipt.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import { isPurged as isAgentPurged, loadAgent } from '../../store/agent/agents.ts';
import { appendAudit } from '../../store/audit/append-audit.ts';
import { type DecisionRow, findDecision } from '../../store/review/decisions.ts';
import { loadFacts, saveFacts } from '../../store/review/facts.ts';
import { insertReceipt } from '../../store/review/receipts.ts';
import { openOutcomeApproval, settleOutcomeApproval } from '../approval/open-outcome-approval.ts';
import { amendResult } from '../run/amend-result.ts';
import { isAlive, type ReviewSubject, subjectOf } from './review-subject.ts';

/**
 * The effect of a receipt. `recorded`: the receipt is new. `known`: it was recorded before. `mismatch`: the gateway
 * signed it, but it matches no approved call.
 */
export type ReceiptOutcome = 'recorded' | 'known' | 'mismatch';

/**
 * Records a verified receipt, regardless of its sender and of when it arrives: updates the facts, the audit record, and
 * the result of a run that has ended (SV-3, TG-8). A receipt with unknown outcome opens an approval (TG-5). The tool
 * events of the receipt are appended to the timeline before the events that the receipt causes, and are published if
 * the gateway does not publish them (HK-1).
 */
export async function recordReceipt(tx: Tx, receipt: Receipt): Promise<ReceiptOutcome> {
  const { trx, at, context } = tx;
  const { policy, peers } = context;
  const { tenant, runId, instance, callId } = receipt;
  const key = { tenant, runId, instance, callId };
  const decision = await findDecision(trx, key);
  if (decision === undefined || !matchesCall(receipt, approvedCall(decision))) return 'mismatch';
  const subject = await subjectOf(trx, await loadAgent(trx, key));
  const isPurged = subject.run.purged_at !== null;
  const hasContent = !isPurged && !isAgentPurged(subject.agent);
  // A late receipt of a purged run or agent is recorded without its content (SUP-4).
  const row = {
    ...receiptRow(receipt, at),
    outcome: outcomeOfReceipt(policy, receipt) ?? null,
    ...(!hasContent && { claims: '{}' }),
  };
  if (!(await insertReceipt(trx, row))) return 'known';
  if (!isPurged) {
    const facts = await loadFacts(trx, key, policy);
    const settled = settleReceipt(policy, facts, receipt);
    if (settled !== facts) await saveFacts(trx, key, settled);
  }
  await appendAudit(
    trx,
    { tenant, kind: 'receipt', runId, instance, callId, facts: receiptFacts(receipt, row.outcome) },
    at,
  );
  await recordToolEvents(tx, subject, receipt, peers.toolGateway.emitsHookEvents);
  if (isAlive(subject)) {
    if (receipt.status === 'unknown') await openOutcomeApproval(tx, subject, decision, receipt);
    else if (receipt.resolvedBy !== '') await settleOutcomeApproval(tx, subject, receipt);
  }
  await amendResult(trx, subject.run);
  return 'recorded';
}

/**
 * Records the same tool events that a gateway with a bus publishes: none for a voided call, and only TOOL_END for a
 * refused call.
 */
async function recordToolEvents(
  { trx, at, context: { events, heldEvents } }: Tx,
  { run, ref }: ReviewSubject,
  receipt: Receipt,
  isPublished: boolean,
): Promise<void> {
  const { status, step, callId } = receipt;
  if (status === 'void') return;
  const scope = { run, agent: ref, step, callId };
  const call = { ...receipt, isPublished };
  if (status !== 'refused') await events.toolStarted(trx, scope, call, at);
  await events.toolEnded(trx, scope, call, at);
  const { runId, instance } = receipt;
  const names = status === 'refused' ? ['TOOL_END'] : ['TOOL_START', 'TOOL_END'];
  const ids = names.map((name) => derivedId('evt', runId, instance, callId, name));
  heldEvents.noteRecorded(trx, receipt, ids);
}

function approvedCall(row: DecisionRow): ApprovedCall | undefined {
  const action = actionFrom(row.executed_action);
  if (action?.kind !== 'tool' || row.args_sha256 === null) return undefined;
  return { tool: action.name, argsSha256: row.args_sha256 };
}

function receiptRow(receipt: Receipt, at: Date) {
  return {
    tenant: receipt.tenant,
    run_id: receipt.runId,
    instance: receipt.instance,
    call_id: receipt.callId,
    revision: receipt.revision,
    receipt_id: receipt.id,
    status: receipt.status,
    stop_reason: receipt.stopReason || null,
    result_sha256: receipt.resultSha256 || null,
    claims: receipt.claimsJson,
    observation: null,
    received_at: at,
  };
}
