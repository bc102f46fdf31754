import {
  applyReceipt,
  applyVoid,
  type BusinessOutcome,
  businessOutcome,
  type FactReceipt,
  type Facts,
  type Policy,
} from '@writ/policy';
import type { Receipt, ReceiptStatus } from './receipt.ts';

const STATUSES: Readonly<Record<Exclude<ReceiptStatus, 'void'>, FactReceipt['status']>> = {
  ok: 'succeeded',
  error: 'failed',
  refused: 'refused',
  unknown: 'unknown',
};

/** The id of a call among the facts of its run: call ids are unique only within an agent. */
export function factCallId(call: { readonly instance: string; readonly callId: string }): string {
  return `${call.instance}/${call.callId}`;
}

/** The facts of a run after a receipt. Receipts may arrive repeatedly and in any order (SV-3). */
export function settleReceipt(policy: Policy, facts: Facts, receipt: Receipt): Facts {
  const callId = factCallId(receipt);
  const { status, tool, fields } = receipt;
  if (status === 'void') return applyVoid(facts, callId);
  return applyReceipt(policy, facts, { callId, tool, status: STATUSES[status], fields });
}

/** Whether an executed call achieved its purpose; undefined when it was not executed (SV-8). */
export function outcomeOfReceipt(policy: Policy, receipt: Receipt): BusinessOutcome | undefined {
  const { status, tool, fields } = receipt;
  if (status === 'void') return undefined;
  return businessOutcome(policy, { tool, status: STATUSES[status], fields });
}
