import { type Clock, isWritError, WakeableLoop } from '@writ/kernel';
import { COMMIT_DELAY_MS } from '@writ/store';
import type { Logger } from '@writ/telemetry';
import type { Supervisor } from '../../peers/supervisor.ts';
import type { GatewayStore, GatewayTransaction } from '../../store/gateway-store.ts';
import { acknowledgeReceipts, pendingReceipts } from '../../store/receipts.ts';
import { deleteRefusals, pendingRefusals } from '../../store/refusals.ts';

/** Options of {@link createReceiptDelivery}. Times are milliseconds. */
export interface ReceiptDeliveryOptions {
  readonly store: GatewayStore;
  readonly supervisor: Supervisor;
  readonly clock: Clock;
  readonly log: Logger;
  /** Age at which a receipt is delivered; before that, the worker usually delivers it. */
  readonly delayMs: number;
  /** Pause between two polls, and upper bound of the first back-off. */
  readonly pollMs: number;
  /** Upper bound of any back-off. */
  readonly retryMaxMs: number;
}

/** Maximum number of receipts, and of refusals, in one delivery; together they fit in a message of 4 MiB. */
const BATCH = 128;

/**
 * Creates the loop that delivers unacknowledged receipts (TG-8) and refused attempts (TG-1) to the supervisor
 * in batches, and repeats them until the supervisor acknowledges them.
 */
export function createReceiptDelivery(options: ReceiptDeliveryOptions): WakeableLoop {
  const { pollMs, retryMaxMs, log } = options;
  return new WakeableLoop({
    pass: async () => ((await deliverBatch(options)) ? 0 : undefined),
    intervalMs: pollMs,
    backoff: { baseMs: pollMs, maxMs: retryMaxMs },
    onError: (error, { attempt, retryInMs }) => {
      const reason = isWritError(error) ? error.reason : 'INTERNAL';
      log.warn({ reason, attempt, retry_in_ms: retryInMs }, 'receipt delivery failed; retrying');
    },
  });
}

/** Delivers one batch. @returns whether more may be pending */
async function deliverBatch({
  store,
  supervisor,
  clock,
  delayMs,
  log,
}: ReceiptDeliveryOptions): Promise<boolean> {
  const before = new Date(clock.now().getTime() - delayMs);
  const receipts = await pendingReceipts(store.db, before, BATCH);
  const refusals = await pendingRefusals(store.db, BATCH);
  if (receipts.length + refusals.length === 0) return false;
  const tokens = receipts.map(({ token }) => token);
  const acknowledged = await supervisor.report(tokens, refusals);
  const receiptIds = new Set(acknowledged.receiptIds);
  const refusalIds = new Set(acknowledged.refusalIds);
  const delivered = receipts.map(({ receiptId }) => receiptId).filter((id) => receiptIds.has(id));
  const reported = refusals.map(({ refusal_id }) => refusal_id).filter((id) => refusalIds.has(id));
  const record = async (trx: GatewayTransaction): Promise<void> => {
    if (delivered.length > 0) await acknowledgeReceipts(trx, delivered, clock.now());
    if (reported.length > 0) await deleteRefusals(trx, reported);
  };
  const isFull = delivered.length === BATCH || reported.length === BATCH;
  if (delivered.length + reported.length > 0) {
    const commitDelayMs = isFull ? 0 : COMMIT_DELAY_MS;
    await store.transaction(record, { background: true, commitDelayMs });
  }
  log.debug(
    { delivered: receipts.length, acknowledged: delivered.length, refusals: reported.length },
    'receipts delivered',
  );
  // Items without an acknowledgement are delivered again after the pause.
  return isFull;
}
