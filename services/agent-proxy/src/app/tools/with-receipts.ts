import { type AgentKey, isWritError } from '@writ/kernel';
import { isKeyUnknown } from '../../domain/retry-with-new-credentials.ts';
import type { CarriedReceipts, PendingReceipts } from './pending-receipts.ts';

const NONE: CarriedReceipts = { receipts: [], observations: [] };
const REFUSALS = ['RECEIPT_INVALID', 'RECEIPT_MISMATCH', 'RECEIPT_WRONG_RUN'];

/**
 * Requests a review with the pending receipts of the agent. If the supervisor rejects a receipt, requests the review
 * without receipts, so that a receipt cannot prevent further actions of the agent; the gateway delivers the receipts
 * later, without results (TG-8). All receipts of the rejected request are kept for later reviews if the supervisor does
 * not yet know the key that signed the rejected receipt (SV-6), and are dropped otherwise.
 * @throws the errors of `review`, except the first rejection of a receipt
 */
export async function withReceipts<T>(
  receipts: PendingReceipts,
  agent: AgentKey,
  review: (carried: CarriedReceipts) => Promise<T>,
): Promise<T> {
  const carried = receipts.peek(agent);
  try {
    const decision = await review(carried);
    receipts.delivered(agent, carried);
    return decision;
  } catch (error) {
    if (!isWritError(error) || !REFUSALS.includes(error.reason)) throw error;
    receipts.rejected(agent, carried, isKeyUnknown(error));
    return await review(NONE);
  }
}
