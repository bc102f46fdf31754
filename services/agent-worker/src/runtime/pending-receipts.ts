import type { PendingReceipt, ToolOutcome } from '../domain/calls/tool-call.ts';

/** Largest result that a review can be shown, in bytes; a receipt travels without a larger one. */
const MAX_OBSERVATION_BYTES = 1_048_576;

/** What goes to the supervisor with the next review or report. */
export interface ReceiptBatch {
  readonly receipts: readonly string[];
  readonly observations: readonly { readonly callId: string; readonly content: string }[];
}

/**
 * Receipts and results on their way to the supervisor (SV-7). They come from the journal when the
 * agent runs again, so none is forgotten; one that is shown twice counts once.
 */
export class PendingReceipts {
  #waiting: PendingReceipt[] = [];

  /** Notes the outcome of a call. */
  add(callId: string, { receipt, content }: ToolOutcome): void {
    if (receipt === '') return;
    this.#waiting.push({ callId, receipt, ...(content !== undefined && { content }) });
  }

  /** What a call to the supervisor carries now. */
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

  /** What the supervisor has not been shown yet. */
  get waiting(): readonly PendingReceipt[] {
    return this.#waiting;
  }

  /** Goes on from a checkpoint with what was waiting there. */
  restore(waiting: readonly PendingReceipt[]): void {
    this.#waiting = [...waiting];
  }

  /** The supervisor has answered: it has what it was shown. */
  delivered({ receipts }: ReceiptBatch): void {
    this.#waiting = this.#waiting.filter(({ receipt }) => !receipts.includes(receipt));
  }

  /** A recorded answer of the supervisor: it had everything up to there. */
  acknowledgeAll(): void {
    this.#waiting = [];
  }
}
