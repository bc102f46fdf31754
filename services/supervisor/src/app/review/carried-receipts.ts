import { readReceipt, type Verifier } from '@writ/identity';
import { PermissionDeniedError, sha256Hex } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import type { Receipt } from '../../domain/facts/receipt.ts';
import type { AgentKey } from '../../store/agent/agents.ts';
import { keepObservation } from '../../store/review/receipts.ts';
import { loadRun } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { receiptFrom } from '../../wire/receipt.ts';
import { amendResult } from '../run/amend-result.ts';
import { type ReceiptDesk, recordReceipt } from './record-receipt.ts';

/** The receipts and tool results that a worker sends along with a request. */
export interface Carried {
  /** Receipts as JWS. */
  readonly receipts: readonly string[];
  readonly observations: readonly { readonly callId: string; readonly content: string }[];
}

/**
 * Checks what a worker carries before the transaction that needs it, so that nobody waits for
 * signatures, and returns how to record it there. A receipt counts by the gateway's signature alone;
 * what a call gave back counts only where a receipt vouches for exactly these bytes (SV-7).
 * @throws InvalidRequestError RECEIPT_INVALID; PermissionDeniedError RECEIPT_WRONG_RUN for another
 *   tenant or run, and RECEIPT_MISMATCH in the transaction; UnavailableError KEYS_UNAVAILABLE
 */
export async function readCarriedReceipts(
  context: ReceiptDesk & Pick<SupervisorContext, 'verifier'>,
  agent: AgentKey,
  { receipts: tokens, observations }: Carried,
): Promise<(trx: SupervisorTransaction, at: Date) => Promise<void>> {
  const receipts: Receipt[] = [];
  for (const token of tokens) receipts.push(await readCarried(context.verifier, agent, token));
  const shown = observations.map(({ callId, content }) => ({
    callId,
    content,
    sha256: sha256Hex(content),
  }));
  return async (trx, at) => {
    for (const receipt of receipts) {
      if ((await recordReceipt(trx, context, receipt, at)) === 'unfit') throw unfit(receipt);
    }
    if (shown.length === 0) return;
    const run = await loadRun(trx, agent);
    if (run.purged_at !== null) return;
    let kept = false;
    for (const { callId, content, sha256 } of shown) {
      kept = (await keepObservation(trx, { ...agent, callId }, content, sha256)) || kept;
    }
    if (kept) await amendResult(trx, run);
  };
}

async function readCarried(verifier: Verifier, agent: AgentKey, token: string): Promise<Receipt> {
  const receipt = receiptFrom(await readReceipt(verifier, token));
  if (receipt.tenant === agent.tenant && receipt.runId === agent.runId) return receipt;
  throw new PermissionDeniedError(
    'RECEIPT_WRONG_RUN',
    `Receipt ${receipt.id} belongs to another run; an agent may carry those of its own run.`,
    { receipt_id: receipt.id, field: 'receipts' },
  );
}

function unfit({ id, callId }: Receipt): PermissionDeniedError {
  return new PermissionDeniedError(
    'RECEIPT_MISMATCH',
    `Receipt ${id} is about call ${callId}, and no such call was approved.`,
    { receipt_id: id, call_id: callId },
  );
}
