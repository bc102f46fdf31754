import type { PendingReceipt, ToolOutcome } from '../domain/calls/tool-call.ts';

/**
 * Maximum size of a result attached to a review, in bytes; a receipt is sent without a larger one.
 */
const MAX_OBSERVATION_BYTES = 1_048_576;

/** Receipts and results for the next review or report. */
export interface ReceiptBatch {
  readonly receipts: readonly string[];
  readonly observations: readonly { readonly callId: string; readonly content: string }[];
}

/**
 * Receipts and results that are not yet acknowledged by the supervisor (SV-7). Replays restore them
 * from the journal, so that none is lost; the supervisor ignores duplicates.
 */
export class PendingReceipts {
  #waiting: PendingReceipt[] = [];

  /** Adds the outcome of a call. */
  add(callId: string, { receipt, content }: ToolOutcome): void {
    if (receipt === '') return;
    this.#waiting.push({ callId, receipt, ...(content !== undefined && { content }) });
  }

  /** Returns the batch to attach to a call to the supervisor. */
  peek(): ReceiptBatch {
    return {
      receipts: this.#waiting.map(({ receipt }) => receipt),
      observations: this.#waiting.flatMap(({ callId, content }) =>
        content === undefined || Buffer.byteLength(content) > MAX_OBSERVATION_BYTES
          ? []
          : [{ callId, content }],
      ),
    };
  }

  /** Receipts that are not yet acknowledged. */
  get waiting(): readonly PendingReceipt[] {
    return this.#waiting;
  }

  /** Restores the pending receipts of a checkpoint. */
  restore(waiting: readonly PendingReceipt[]): void {
    this.#waiting = [...waiting];
  }

  /** Removes the receipts of an acknowledged batch. */
  delivered({ receipts }: ReceiptBatch): void {
    this.#waiting = this.#waiting.filter(({ receipt }) => !receipts.includes(receipt));
  }

  /** Removes all receipts, because the journal has a later response of the supervisor. */
  acknowledgeAll(): void {
    this.#waiting = [];
  }
}
