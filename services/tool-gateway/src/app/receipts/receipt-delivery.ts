import { type Clock, isWritError, WakeableLoop } from '@writ/kernel';
import { COMMIT_DELAY_MS } from '@writ/store';
import type { Logger } from '@writ/telemetry';
import type { Supervisor } from '../../peers/supervisor.ts';
import type { GatewayStore, GatewayTransaction } from '../../store/gateway-store.ts';
import { acknowledgeReceipts, pendingReceipts } from '../../store/receipts.ts';
import { deleteRefusals, pendingRefusals } from '../../store/refusals.ts';

/** Options of {@link createReceiptDelivery} and {@link createRefusalDelivery}. Times are milliseconds. */
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

/** Maximum number of items in one delivery; they fit in a message of 4 MiB. */
const BATCH = 128;

/**
 * Creates the loop that delivers unacknowledged receipts to the supervisor in batches, and repeats them until the
 * supervisor acknowledges them (TG-8).
 */
export function createReceiptDelivery(options: ReceiptDeliveryOptions): WakeableLoop {
  return deliveryLoop(options, deliverReceipts, 'receipt delivery failed; retrying');
}

/**
 * Creates the loop that does the same for refused attempts (TG-1). It is a loop of its own, so that a refused attempt
 * that the supervisor rejects does not delay receipts.
 */
export function createRefusalDelivery(options: ReceiptDeliveryOptions): WakeableLoop {
  return deliveryLoop(options, deliverRefusals, 'refusal delivery failed; retrying');
}

/** @param deliver delivers one batch; returns whether more may be pending */
function deliveryLoop(
  options: ReceiptDeliveryOptions,
  deliver: (options: ReceiptDeliveryOptions) => Promise<boolean>,
  failed: string,
): WakeableLoop {
  const { pollMs, retryMaxMs, log } = options;
  return new WakeableLoop({
    pass: async () => ((await deliver(options)) ? 0 : undefined),
    intervalMs: pollMs,
    backoff: { baseMs: pollMs, maxMs: retryMaxMs },
    onError: (error, { attempt, retryInMs }) => {
      const reason = isWritError(error) ? error.reason : 'INTERNAL';
      log.warn({ reason, attempt, retry_in_ms: retryInMs }, failed);
    },
  });
}

async function deliverReceipts({
  store,
  supervisor,
  clock,
  delayMs,
  log,
}: ReceiptDeliveryOptions): Promise<boolean> {
  const before = new Date(clock.now().getTime() - delayMs);
  const receipts = await pendingReceipts(store.db, before, BATCH);
  if (receipts.length === 0) return false;
  const known = new Set(await supervisor.reportReceipts(receipts.map(({ token }) => token)));
  const ids = receipts.map(({ receiptId }) => receiptId).filter((id) => known.has(id));
  await record(store, ids, (trx) => acknowledgeReceipts(trx, ids, clock.now()));
  log.debug({ delivered: receipts.length, acknowledged: ids.length }, 'receipts delivered');
  return ids.length === BATCH;
}

async function deliverRefusals({
  store,
  supervisor,
  log,
}: ReceiptDeliveryOptions): Promise<boolean> {
  const refusals = await pendingRefusals(store.db, BATCH);
  if (refusals.length === 0) return false;
  const known = new Set(await supervisor.reportRefusals(refusals));
  const ids = refusals.map(({ refusal_id }) => refusal_id).filter((id) => known.has(id));
  await record(store, ids, (trx) => deleteRefusals(trx, ids));
  log.debug({ delivered: refusals.length, acknowledged: ids.length }, 'refusals delivered');
  return ids.length === BATCH;
}

/**
 * Records the acknowledgement of `ids`, if there are any. Items without an acknowledgement are delivered again after
 * the pause.
 */
async function record(
  store: GatewayStore,
  ids: readonly string[],
  work: (trx: GatewayTransaction) => Promise<void>,
): Promise<void> {
  if (ids.length === 0) return;
  const commitDelayMs = ids.length === BATCH ? 0 : COMMIT_DELAY_MS;
  await store.transaction(work, { background: true, commitDelayMs });
}
