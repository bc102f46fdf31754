import { omitUndefined, sha256Hex } from '@writ/kernel';
import { addEvents, type CarriedEvent } from '../domain/agent/carried-event.ts';
import type { PendingReceipt, ToolOutcome } from '../domain/calls/tool-call.ts';
import { earlierInStep } from '../events.ts';

/**
 * Maximum size of a result attached to a review, in bytes. The receipt of a larger result is sent without the result.
 */
const MAX_RESULT_BYTES = 1_048_576;
/** Maximum number of receipts in a request to the supervisor. */
const MAX_RECEIPTS = 256;
/**
 * Maximum total size of the receipts, and of the results, in a request to the supervisor, in bytes. Of the limit of the
 * supervisor, 4 MiB, 2 MiB remain for the proposal and the events.
 */
const MAX_TOTAL_RECEIPT_BYTES = 524_288;
const MAX_TOTAL_RESULT_BYTES = 1_572_864;

/** Sorts call_ids such as op-2 and op-10 by their numbers. */
const BY_CALL_ID = new Intl.Collator('en', { numeric: true });

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
  /** Digests of the receipts that a replayed request has delivered with their results. */
  readonly #delivered = new Set<string>();

  /** @param events the stored events of the agent */
  constructor(events: readonly CarriedEvent[] = []) {
    this.#events = events;
  }

  /** Events that are not yet acknowledged. */
  get events(): readonly CarriedEvent[] {
    return this.#events;
  }

  /** Returns the ids to list in `after` of a later event of `step`; see {@link earlierInStep}. */
  earlierInStep(step: number): string[] {
    return earlierInStep(this.#events, step);
  }

  /** Adds events of the agent, oldest first. */
  addEvents(events: readonly CarriedEvent[]): void {
    this.#events = addEvents(this.#events, events);
  }

  /** Adds the outcome of a call. */
  add(callId: string, { receipt, content }: ToolOutcome): void {
    if (receipt === '' || this.#delivered.has(digestOf(receipt))) return;
    this.#waiting.push(withoutLargeContent({ callId, receipt, ...omitUndefined({ content }) }));
  }

  /**
   * Returns the batch to attach to a call to the supervisor. Results of concurrent branches can exceed the limits of
   * one request; later requests contain the remaining results, each with its receipt again. If the agent ends before
   * these requests, the gateway still delivers the receipts, but the supervisor does not get their results.
   */
  peek(): ReceiptBatch {
    const ordered = this.#waiting.toSorted((a, b) => BY_CALL_ID.compare(a.callId, b.callId));
    // Receipts have a limit of their own, because the rules for the next action depend on them (SV-3).
    const batch = upTo(MAX_TOTAL_RECEIPT_BYTES, ordered, ({ receipt }) => receipt).slice(
      0,
      MAX_RECEIPTS,
    );
    const withResults = upTo(MAX_TOTAL_RESULT_BYTES, batch, ({ content = '' }) => content);
    return {
      receipts: batch.map(({ receipt }) => receipt),
      observations: withResults.flatMap(({ callId, content }) =>
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
    this.#waiting = waiting.map(withoutLargeContent);
  }

  /**
   * Removes the receipts and events of an acknowledged batch, except for receipts whose results did not fit. Returns
   * the digests of the removed receipts, which the journal must keep with the response. A call_id would not identify a
   * receipt, because a call gets a second receipt when a person resolves its outcome.
   */
  acknowledge({ receipts, observations, events }: ReceiptBatch): readonly string[] {
    this.#events = this.#events.filter((event) => !events.includes(event));
    const sent = new Set(receipts);
    const withResult = new Set(observations.map(({ callId }) => callId));
    const isDelivered = ({ callId, receipt, content }: PendingReceipt) =>
      sent.has(receipt) && (content === undefined || withResult.has(callId));
    const removed = this.#waiting.filter(isDelivered);
    this.#waiting = this.#waiting.filter((each) => !isDelivered(each));
    return removed.map(({ receipt }) => digestOf(receipt));
  }

  /**
   * Removes the receipts that a replayed request of `branch` delivered, and makes {@link add} ignore them, because the
   * replay of another branch may add them later.
   * @param digests the result of {@link acknowledge}; undefined if an earlier version wrote the journal entry. The
   *   request of such an entry delivered all pending receipts. Outside of branches, the replay has the same pending
   *   receipts, so all are removed. In a branch, the replay may have other pending receipts, so none is removed.
   */
  replayed(digests: readonly string[] | undefined, branch: string): void {
    if (digests === undefined) {
      if (branch === '') this.#waiting = [];
      return;
    }
    for (const digest of digests) this.#delivered.add(digest);
    this.#waiting = this.#waiting.filter(({ receipt }) => !this.#delivered.has(digestOf(receipt)));
  }
}

function digestOf(receipt: string): string {
  return sha256Hex(receipt).slice(0, 16);
}

function withoutLargeContent({ content, ...pending }: PendingReceipt): PendingReceipt {
  const isTooLarge = content !== undefined && Buffer.byteLength(content) > MAX_RESULT_BYTES;
  return isTooLarge ? pending : { ...pending, ...omitUndefined({ content }) };
}

/** Returns the first items whose texts together have at most `maxBytes` bytes. */
function upTo(
  maxBytes: number,
  items: readonly PendingReceipt[],
  textOf: (item: PendingReceipt) => string,
): readonly PendingReceipt[] {
  let bytes = 0;
  const end = items.findIndex((item) => {
    bytes += Buffer.byteLength(textOf(item));
    return bytes > maxBytes;
  });
  return end === -1 ? items : items.slice(0, end);
}
