import { omitUndefined } from '@writ/kernel';
import { addEvents, type CarriedEvent } from '../domain/agent/carried-event.ts';
import type { PendingReceipt, ToolOutcome } from '../domain/calls/tool-call.ts';
import { earlierInStep } from '../events.ts';

/**
 * Maximum size of a result attached to a review, in bytes. The receipt of a larger result is sent without the result.
 */
const MAX_OBSERVATION_BYTES = 1_048_576;

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
    this.#waiting.push({ callId, receipt, ...omitUndefined({ content }) });
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

  /** Removes all receipts, because the journal has a later response of the supervisor. */
  acknowledgeAll(): void {
    this.#waiting = [];
  }
}
