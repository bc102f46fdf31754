import type { CarriedEvent } from '@writ/contracts/writ/timeline/v1/carried_event_pb';
import { readReceipt, type Verifier } from '@writ/identity';
import { type AgentKey, PermissionDeniedError, sha256Hex } from '@writ/kernel';
import type { SupervisorContext, Tx } from '../../context.ts';
import type { Receipt } from '../../domain/facts/receipt.ts';
import { isPurged, loadAgent } from '../../store/agent/agents.ts';
import { keepObservation } from '../../store/review/receipts.ts';
import { loadRun } from '../../store/run/runs.ts';
import { receiptFrom } from '../../wire/receipt.ts';
import { amendResult } from '../run/amend-result.ts';
import { recordCarriedEvents } from '../timeline/carried-events.ts';
import { recordReceipt } from './record-receipt.ts';

/** The receipts, tool results and events that a worker sends along with a request. */
export interface Carried {
  /** Receipts as JWS. */
  readonly receipts: readonly string[];
  readonly observations: readonly { readonly callId: string; readonly content: string }[];
  readonly events: readonly CarriedEvent[];
}

/** Records what {@link readCarriedReceipts} verified. */
export type RecordCarried = (tx: Tx) => Promise<void>;

/**
 * Verifies the receipts that a worker sends with a request. This is done before the transaction starts, so that the
 * transaction does not wait for signature checks. Returns a function that records the receipts, observations and events
 * in the transaction. A receipt is accepted if the gateway signed it and it matches an approved call of this run; an
 * observation is recorded only if a receipt contains the digest of exactly its bytes (SV-7).
 * @throws InvalidRequestError RECEIPT_INVALID; PermissionDeniedError RECEIPT_WRONG_RUN for another tenant or run, and
 *   RECEIPT_MISMATCH in the transaction; UnavailableError KEYS_UNAVAILABLE
 */
export async function readCarriedReceipts(
  { verifier }: SupervisorContext,
  agent: AgentKey,
  { receipts: tokens, observations, events }: Carried,
): Promise<RecordCarried> {
  const receipts: Receipt[] = [];
  for (const token of tokens) receipts.push(await readCarried(verifier, agent, token));
  const digested = observations.map(({ callId, content }) => ({
    callId,
    content,
    sha256: sha256Hex(content),
  }));
  return async (tx) => {
    const { trx } = tx;
    for (const receipt of receipts) {
      if ((await recordReceipt(tx, receipt)) === 'mismatch') throw mismatch(receipt);
    }
    // The events of the worker follow the tool events of the receipts on the timeline, so they are recorded afterwards.
    await recordCarriedEvents(tx, agent, events);
    if (digested.length === 0) return;
    const run = await loadRun(trx, agent);
    if (run.purged_at !== null || isPurged(await loadAgent(trx, agent))) return;
    let kept = false;
    for (const { callId, content, sha256 } of digested) {
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
    `Receipt ${receipt.id} belongs to another run; send only receipts of the calling agent's run.`,
    { receipt_id: receipt.id, field: 'receipts' },
  );
}

function mismatch({ id, callId }: Receipt): PermissionDeniedError {
  return new PermissionDeniedError(
    'RECEIPT_MISMATCH',
    `Receipt ${id} does not match an approved call with the id ${callId}.`,
    { receipt_id: id, call_id: callId },
  );
}
