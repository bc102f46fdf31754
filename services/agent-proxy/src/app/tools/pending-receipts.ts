import { type AgentKey, agentKeyText, ByteCache } from '@writ/kernel';

/** Maximum number of receipts that are kept for an agent; older receipts are dropped. */
const MAX_RECEIPTS = 64;
/**
 * Maximum size of the results in one review, bytes; the rest is sent with the next review. The receipt of a larger
 * result is sent without the result, because the supervisor rejects a request with it.
 */
const MAX_BYTES = 1_048_576;
/** Number of rejections after which a receipt is dropped even if the supervisor does not know its key yet. */
const MAX_REJECTIONS = 100;
/** Maximum memory of all receipts with their results, bytes. */
const MAX_CACHED_BYTES = 32_000_000;

/** A receipt that the supervisor has not seen, with its result. */
export interface PendingReceipt {
  readonly callId: string;
  readonly receipt: string;
  /** The result; empty when the call has none. */
  readonly content: string;
}

interface KeptReceipt extends PendingReceipt {
  /** Number of reviews that were rejected with this receipt. */
  readonly rejections: number;
}

/** The receipts and results that are sent with a review. */
export interface CarriedReceipts {
  readonly receipts: readonly string[];
  readonly observations: readonly { readonly callId: string; readonly content: string }[];
}

/**
 * Receipts of calls that ended in this process, to be attached to the agent's next review, so that the facts of its run
 * include them (SV-3, SV-7). Receipts are kept only in memory: if this process loses a receipt, the gateway reports the
 * receipt later, without the result.
 */
export class PendingReceipts {
  readonly #byAgent = new ByteCache<readonly KeptReceipt[]>({
    name: 'pending_receipts',
    maxBytes: MAX_CACHED_BYTES,
  });

  add(agent: AgentKey, pending: PendingReceipt): void {
    if (pending.receipt === '') return;
    const key = agentKeyText(agent);
    const known = this.#byAgent.get(key) ?? [];
    if (known.some(({ receipt }) => receipt === pending.receipt)) return;
    const isTooLarge = Buffer.byteLength(pending.content) > MAX_BYTES;
    const kept = { ...pending, ...(isTooLarge && { content: '' }), rejections: 0 };
    this.#byAgent.set(key, [...known, kept].slice(-MAX_RECEIPTS));
  }

  /** Returns the receipts for the next review, with as many results as fit. */
  peek(agent: AgentKey): CarriedReceipts {
    const pending = this.#byAgent.get(agentKeyText(agent)) ?? [];
    const observations: { readonly callId: string; readonly content: string }[] = [];
    let bytes = 0;
    for (const { callId, content } of pending) {
      if (content === '') continue;
      bytes += Buffer.byteLength(content);
      if (bytes > MAX_BYTES) break;
      observations.push({ callId, content });
    }
    return { receipts: pending.map(({ receipt }) => receipt), observations };
  }

  /**
   * Removes the receipts that were sent with a review. A receipt whose result was not included is kept and sent again
   * with the result.
   */
  delivered(agent: AgentKey, { receipts, observations }: CarriedReceipts): void {
    const key = agentKeyText(agent);
    const carried = new Set(observations.map(({ callId }) => callId));
    const left = (this.#byAgent.get(key) ?? []).filter(
      ({ receipt, callId, content }) =>
        !receipts.includes(receipt) || (content !== '' && !carried.has(callId)),
    );
    this.#replace(key, left);
  }

  /**
   * Removes the receipts of a rejected review. With `isKeyUnknown`, a receipt is kept for later reviews, which the
   * supervisor may accept when it knows the key, until it was rejected MAX_REJECTIONS times.
   */
  rejected(agent: AgentKey, { receipts }: CarriedReceipts, isKeyUnknown: boolean): void {
    const key = agentKeyText(agent);
    const limit = isKeyUnknown ? MAX_REJECTIONS : 1;
    const left = (this.#byAgent.get(key) ?? []).flatMap((kept) => {
      if (!receipts.includes(kept.receipt)) return kept;
      const rejections = kept.rejections + 1;
      return rejections < limit ? { ...kept, rejections } : [];
    });
    this.#replace(key, left);
  }

  /** Forgets an agent that has ended. */
  forget(agent: AgentKey): void {
    this.#byAgent.delete(agentKeyText(agent));
  }

  #replace(key: string, left: readonly KeptReceipt[]): void {
    if (left.length === 0) this.#byAgent.delete(key);
    else this.#byAgent.set(key, left);
  }
}
