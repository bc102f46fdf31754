import { type AgentKey, isWritError } from '@writ/kernel';
import { isKeyUnknown } from '../../domain/retry-with-new-credentials.ts';
import type { CarriedReceipts, PendingReceipts } from './pending-receipts.ts';

const NONE: CarriedReceipts = { receipts: [], observations: [] };
const REFUSALS = ['RECEIPT_INVALID', 'RECEIPT_MISMATCH', 'RECEIPT_WRONG_RUN'];

/**
 * Requests a review with the pending receipts of the agent. If the supervisor rejects a receipt, requests the review
 * without receipts, so that a receipt cannot prevent further actions of the agent; the gateway delivers the receipts
 * later, without results (TG-8). Receipts with a key that the supervisor does not know yet are kept for the next review
 * (SV-6); after any other rejection, the receipts are dropped.
 * @throws what `review` throws for another reason
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
    if (!isKeyUnknown(error)) receipts.forget(agent);
    return await review(NONE);
  }
}
