import { type Clock, isWritError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { Supervisor } from '../../peers/supervisor.ts';
import type { GatewayStore, GatewayTransaction } from '../../store/gateway-store.ts';
import { acknowledgeReceipts, pendingReceipts } from '../../store/receipts.ts';
import { forgetRefusals, pendingRefusals } from '../../store/refusals.ts';

/** What {@link ReceiptDelivery} needs. Times are milliseconds. */
export interface ReceiptDeliveryOptions {
  readonly store: GatewayStore;
  readonly supervisor: Supervisor;
  readonly clock: Clock;
  readonly log: Logger;
  /** How old a receipt gets before it is delivered. */
  readonly delayMs: number;
  /** Between two looks. */
  readonly pollMs: number;
  /** Longest wait after a failure; the first is `pollMs`, then it doubles. */
  readonly retryMaxMs: number;
}

/** Receipts, and refused attempts, of one delivery: within a message of 4 MiB. */
const BATCH = 128;

/**
 * Delivers receipts that no answer has acknowledged (TG-8), and attempts that were refused before any
 * (TG-1): receipts delayed, both in batches, and again with back-off until the supervisor says that
 * it has them.
 */
export class ReceiptDelivery {
  readonly #options: ReceiptDeliveryOptions;
  #timer: NodeJS.Timeout | undefined;
  #pass: Promise<void> = Promise.resolve();
  #failures = 0;
  #stopped = false;

  constructor(options: ReceiptDeliveryOptions) {
    this.#options = options;
  }

  /** Begins with what a former process left behind. */
  start(): void {
    this.#schedule(0);
  }

  /** Delivers no more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#pass;
  }

  #schedule(delayMs: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#pass = this.#look();
    }, delayMs);
  }

  async #look(): Promise<void> {
    const { pollMs, retryMaxMs, log } = this.#options;
    try {
      while (!this.#stopped && (await this.#deliver())) this.#failures = 0;
      this.#failures = 0;
      this.#schedule(pollMs);
    } catch (error) {
      this.#failures += 1;
      const ceiling = Math.min(retryMaxMs, pollMs * 2 ** (this.#failures - 1));
      const retryInMs = Math.ceil(ceiling / 2 + Math.random() * (ceiling / 2));
      const reason = isWritError(error) ? error.reason : 'INTERNAL';
      log.warn(
        { reason, attempt: this.#failures, retry_in_ms: retryInMs },
        'Receipts were not delivered.',
      );
      this.#schedule(retryInMs);
    }
  }

  /** Delivers one batch. Resolves to whether more may be waiting. */
  async #deliver(): Promise<boolean> {
    const { store, supervisor, clock, delayMs, log } = this.#options;
    const before = new Date(clock.now().getTime() - delayMs);
    const receipts = await pendingReceipts(store.db, before, BATCH);
    const refusals = await pendingRefusals(store.db, BATCH);
    if (receipts.length + refusals.length === 0) return false;
    const tokens = receipts.map(({ token }) => token);
    const answered = await supervisor.report(tokens, refusals);
    const taken = within(
      receipts.map(({ receiptId }) => receiptId),
      answered.receiptIds,
    );
    const told = within(
      refusals.map(({ refusal_id }) => refusal_id),
      answered.refusalIds,
    );
    const record = async (trx: GatewayTransaction): Promise<void> => {
      if (taken.length > 0) await acknowledgeReceipts(trx, taken, clock.now());
      if (told.length > 0) await forgetRefusals(trx, told);
    };
    if (taken.length + told.length > 0) await store.transaction(record, { background: true });
    log.debug(
      { delivered: receipts.length, acknowledged: taken.length, refusals: told.length },
      'Receipts were delivered.',
    );
    // What was not acknowledged is delivered again, but not at once.
    return taken.length === BATCH || told.length === BATCH;
  }
}

/** Of what was delivered, that which was answered. */
function within(delivered: readonly string[], answered: readonly string[]): readonly string[] {
  const known = new Set(answered);
  return delivered.filter((id) => known.has(id));
}
