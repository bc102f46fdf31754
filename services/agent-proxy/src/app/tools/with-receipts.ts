import { type AgentKey, isWritError } from '@writ/kernel';
import { isKeyUnknown } from '../../domain/retry-with-new-credentials.ts';
import type { CarriedReceipts, PendingReceipts } from './pending-receipts.ts';

const NONE: CarriedReceipts = { receipts: [], observations: [] };
const REFUSALS = ['RECEIPT_INVALID', 'RECEIPT_MISMATCH', 'RECEIPT_WRONG_RUN'];

/**
 * Requests a review with the pending receipts of the agent. If the supervisor rejects a receipt, requests the review
 * without receipts, so that a receipt cannot prevent further actions of the agent; the gateway delivers the receipts
 * later, without results (TG-8). If the supervisor does not know their key yet, the receipts are kept for later reviews
 * (SV-6); after any other rejection, the receipts of the request are dropped.
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
    receipts.rejected(agent, carried, isKeyUnknown(error));
    return await review(NONE);
  }
}
