import { omitUndefined } from '@writ/kernel';
import { addEvents, type CarriedEvent } from '../domain/agent/carried-event.ts';
import type { PendingReceipt, ToolOutcome } from '../domain/calls/tool-call.ts';
import { earlierInStep } from '../events.ts';

/**
 * Maximum size of a result attached to a review, in bytes. The receipt of a larger result is sent without the result.
 */
const MAX_OBSERVATION_BYTES = 1_048_576;
/** Maximum number of receipts in a request to the supervisor. */
const MAX_RECEIPTS = 256;
/**
 * Maximum size of the receipts and results in a request to the supervisor, in bytes. With the proposal and the events,
 * the request is smaller than the limit of the supervisor, 4 MiB.
 */
const MAX_BATCH_BYTES = 2_097_152;

const BY_OPERATION = new Intl.Collator('en', { numeric: true });

/** Receipts, results and events for the next review or report. */
export interface ReceiptBatch {
  readonly receipts: readonly string[];
  readonly observations: readonly { readonly callId: string; readonly content: string }[];
  readonly events: readonly CarriedEvent[];
}

/**
 * Receipts, results (SV-7) and events (HK-1) that are not yet acknowledged by the supervisor. Replays restore receipts
 * and results from the journal, and events from the row of the agent, so that no receipt or event is lost; the
 * supervisor ignores duplicates.
 */
export class PendingReceipts {
  #waiting: PendingReceipt[] = [];
  #events: readonly CarriedEvent[];

  /** @param events the stored events of the agent */
  constructor(events: readonly CarriedEvent[] = []) {
    this.#events = events;
  }

  /** Events that are not yet acknowledged. */
  get events(): readonly CarriedEvent[] {
    return this.#events;
  }

  /** Returns the ids of the events that later events of the step list in `after`, see {@link earlierInStep}. */
  earlierInStep(step: number): string[] {
    return earlierInStep(this.#events, step);
  }

  /** Adds events of the agent, oldest first. */
  addEvents(events: readonly CarriedEvent[]): void {
    this.#events = addEvents(this.#events, events);
  }

  /** Adds the outcome of a call. */
  add(callId: string, { receipt, content }: ToolOutcome): void {
    if (receipt === '') return;
    const isTooLarge = content !== undefined && Buffer.byteLength(content) > MAX_OBSERVATION_BYTES;
    this.#waiting.push({
      callId,
      receipt,
      ...(!isTooLarge && omitUndefined({ content })),
    });
  }

  /**
   * Returns the batch to attach to a call to the supervisor. Results of concurrent branches can exceed the limits of one
   * request; later requests contain the others. When the agent ends before, the gateway still delivers the receipts, but
   * the supervisor does not get their results.
   */
  peek(): ReceiptBatch {
    const batch = this.#nextBatch();
    return {
      receipts: batch.map(({ receipt }) => receipt),
      observations: batch.flatMap(({ callId, content }) =>
        content === undefined ? [] : [{ callId, content }],
      ),
      events: this.#events,
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

  /** Removes the receipts and events of an acknowledged batch. */
  delivered({ receipts, events }: ReceiptBatch): void {
    this.#events = this.#events.filter((event) => !events.includes(event));
    this.#waiting = this.#waiting.filter(({ receipt }) => !receipts.includes(receipt));
  }

  /**
   * Removes the receipts of a request that the agent sent outside of branches before this replay. The journal has its
   * response. A replay has at least the receipts that were pending then, in the same order, so these receipts were in
   * that request or in an earlier one.
   */
  acknowledgeReplayed(): void {
    const batch = new Set(this.#nextBatch());
    this.#waiting = this.#waiting.filter((each) => !batch.has(each));
  }

  /** Returns the first receipts, in the order of the operations, that fit into one request. */
  #nextBatch(): readonly PendingReceipt[] {
    const ordered = this.#waiting.toSorted((a, b) => BY_OPERATION.compare(a.callId, b.callId));
    let bytes = 0;
    const end = ordered.findIndex(({ receipt, content = '' }) => {
      bytes += Buffer.byteLength(receipt) + Buffer.byteLength(content);
      return bytes > MAX_BATCH_BYTES;
    });
    return ordered.slice(0, Math.min(end === -1 ? ordered.length : end, MAX_RECEIPTS));
  }
}
