import { pinned, type SupervisorContext } from '../../context.ts';
import { receiptFacts } from '../../domain/audit/audit-facts.ts';
import { type ApprovedCall, fitsCall, type Receipt } from '../../domain/facts/receipt.ts';
import { settleReceipt } from '../../domain/facts/settle-receipt.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { appendAudit } from '../../store/audit.ts';
import { type DecisionRow, findDecision } from '../../store/review/decisions.ts';
import { loadFacts, saveFacts } from '../../store/review/facts.ts';
import { insertReceipt } from '../../store/review/receipts.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { openResolve } from '../approval/outcome-approval.ts';
import { settleResolve } from '../approval/settle-resolve.ts';
import { amendResult } from '../run/amend-result.ts';
import { type Acting, actingOf, isAlive } from './review-subject.ts';

/** What receipts are recorded with. */
export type ReceiptDesk = Pick<SupervisorContext, 'policy' | 'events' | 'config' | 'peers'>;

/**
 * What became of a receipt. `recorded`: it counts from now on. `known`: it did before. `unfit`: the
 * gateway signed it, but nothing was approved that it could be about.
 */
export type ReceiptFate = 'recorded' | 'known' | 'unfit';

/**
 * Takes a verified receipt on record, whoever brought it and however late: facts, audit, and the
 * result of a run that is over (SV-3, TG-8). An unknown outcome is put to a person (TG-5). Where the
 * gateway does not tell of its calls itself, the receipt does (HK-1).
 */
export async function recordReceipt(
  trx: SupervisorTransaction,
  current: ReceiptDesk,
  receipt: Receipt,
  at: Date,
): Promise<ReceiptFate> {
  const desk = pinned(current);
  const { tenant, runId, instance, callId } = receipt;
  const key = { tenant, runId, instance, callId };
  const decision = await findDecision(trx, key);
  if (decision === undefined || !fitsCall(receipt, approvedCall(decision))) return 'unfit';
  const acting = await actingOf(trx, await loadAgent(trx, key));
  const isPurged = acting.run.purged_at !== null;
  // Of a run whose contents are deleted, a late receipt is kept without any (SUP-4).
  const row = { ...receiptRow(receipt, at), ...(isPurged && { claims: '{}' }) };
  if (!(await insertReceipt(trx, row))) return 'known';
  if (!isPurged) {
    const facts = await loadFacts(trx, key, desk.policy);
    const settled = settleReceipt(desk.policy, facts, receipt);
    if (settled !== facts) await saveFacts(trx, key, settled);
  }
  await appendAudit(
    trx,
    { tenant, kind: 'receipt', runId, instance, callId, facts: receiptFacts(receipt) },
    at,
  );
  if (!desk.peers.toolGateway.emitsHookEvents) await tellOfCall(trx, desk, acting, receipt, at);
  if (isAlive(acting)) {
    if (receipt.status === 'unknown') await openResolve(trx, desk, acting, decision, receipt, at);
    else if (receipt.resolvedBy !== '') await settleResolve(trx, desk, acting, receipt, at);
  }
  await amendResult(trx, acting.run);
  return 'recorded';
}

/** The events that a gateway with a bus emits: none of a call that was burnt, no start of a refused one. */
async function tellOfCall(
  trx: SupervisorTransaction,
  { events }: ReceiptDesk,
  { run, ref }: Acting,
  receipt: Receipt,
  at: Date,
): Promise<void> {
  const { status, step, callId } = receipt;
  if (status === 'void') return;
  const scope = { run, agent: ref, step, callId };
  if (status !== 'refused') await events.toolStarted(trx, scope, receipt, at);
  await events.toolEnded(trx, scope, receipt, at);
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
