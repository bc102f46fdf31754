import { type AgentKey, agentKeyText, ByteCache } from '@writ/kernel';

/** Receipts attached to one review, and bytes of results; the rest follows with the next one. */
const MAX_RECEIPTS = 64;
const MAX_BYTES = 1_048_576;
/** Maximum memory of all receipts with their results, bytes. */
const MAX_CACHED_BYTES = 32_000_000;

/** A receipt that the supervisor has not seen, with its result. */
export interface PendingReceipt {
  readonly callId: string;
  readonly receipt: string;
  /** Empty without one. */
  readonly content: string;
}

/**
 * Receipts of calls that ended in this process, to be attached to the agent's next review, so that the facts of its run
 * include them (SV-3, SV-7). In memory: the gateway reports a receipt that is lost here, later and without the result.
 */
export class PendingReceipts {
  readonly #byAgent = new ByteCache<readonly PendingReceipt[]>({
    name: 'pending_receipts',
    maxBytes: MAX_CACHED_BYTES,
  });

  add(agent: AgentKey, pending: PendingReceipt): void {
    if (pending.receipt === '') return;
    const key = agentKeyText(agent);
    const known = this.#byAgent.get(key) ?? [];
    if (known.some(({ receipt }) => receipt === pending.receipt)) return;
    this.#byAgent.set(key, [...known, pending].slice(-MAX_RECEIPTS));
  }

  /** What the next review carries. */
  peek(agent: AgentKey) {
    const pending = this.#byAgent.get(agentKeyText(agent)) ?? [];
    let bytes = 0;
    const observations = pending.flatMap(({ callId, content }) => {
      bytes += Buffer.byteLength(content);
      return content === '' || bytes > MAX_BYTES ? [] : [{ callId, content }];
    });
    return { receipts: pending.map(({ receipt }) => receipt), observations };
  }

  /** Forgets what a review carried. */
  delivered(agent: AgentKey, receipts: readonly string[]): void {
    const key = agentKeyText(agent);
    const left = (this.#byAgent.get(key) ?? []).filter(
      ({ receipt }) => !receipts.includes(receipt),
    );
    if (left.length === 0) this.#byAgent.delete(key);
    else this.#byAgent.set(key, left);
  }

  /** Forgets an agent that has ended. */
  forget(agent: AgentKey): void {
    this.#byAgent.delete(agentKeyText(agent));
  }
}
