import { OverloadedError } from '@writ/kernel';
import type { SlotShare, SlotUser } from '@writ/store';

/** Concurrency limits of one source (TG-6). */
export interface SlotLimits {
  readonly maxInFlight: number;
  readonly maxQueued: number;
}

/** Creates this replica's share of the slots that all replicas share. */
export type ShareOf = (name: string, limit: () => number, user: SlotUser) => SlotShare;

/**
 * Slots of one source, granted in FIFO order; replicas share the slots by the length of their queues. A call
 * acquires its slot before its intent is recorded, so a rejected call leaves no record (TG-8).
 */
export class Slots {
  readonly #name: string;
  readonly #share: SlotShare;
  #limits: SlotLimits;
  readonly #queue = new Set<PromiseWithResolvers<void>>();
  #inUse = 0;
  #idle: PromiseWithResolvers<void> | undefined;

  /** @param name name of the source */
  constructor(name: string, limits: SlotLimits, shareOf: ShareOf) {
    this.#name = name;
    this.#limits = limits;
    this.#share = shareOf(name, () => this.#limits.maxInFlight, {
      demand: () => ({
        inUse: this.#inUse,
        waiting: this.#queue.size,
        weight: this.#queue.size,
      }),
      granted: () => this.#admit(),
      failed: (error) => {
        for (const waiting of this.#queue) waiting.reject(error);
        this.#queue.clear();
        this.#resolveIfIdle();
      },
    });
  }

  /**
   * Acquires a slot. Call the returned function to release the slot; further calls have no effect.
   * @throws OverloadedError TOOL_QUEUE_FULL when the queue is full; the reason of `signal` when it aborts; the error of
   *   the store for a queued call when the store is unavailable
   */
  async acquire(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#inUse >= this.#share.allowance() || this.#queue.size > 0) {
      if (this.#isFull()) throw this.#overloaded();
      await this.#wait(signal);
    } else {
      this.#inUse += 1;
    }
    let held = true;
    return () => {
      if (held) this.#release();
      held = false;
    };
  }

  /** Changes the limits; slots in use are kept. */
  resize({ maxInFlight, maxQueued }: SlotLimits): void {
    this.#limits = { maxInFlight, maxQueued };
    this.#admit();
  }

  /** Releases this replica's share. */
  async close(): Promise<void> {
    await this.#share.close();
  }

  /** Resolves when no slot is in use and the queue is empty. */
  async idle(): Promise<void> {
    if (this.#inUse === 0 && this.#queue.size === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const waiter = Promise.withResolvers<void>();
    this.#queue.add(waiter);
    this.#share.changed();
    const leave = () => {
      if (!this.#queue.delete(waiter)) return;
      waiter.reject(signal.reason);
      this.#resolveIfIdle();
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      await waiter.promise;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  /** Passes the slot to the next waiter, unless the limit was lowered or calls wait at another replica. */
  #release(): void {
    this.#inUse -= 1;
    if (this.#share.mayReuse()) this.#admit();
    else this.#share.changed();
    this.#resolveIfIdle();
  }

  #resolveIfIdle(): void {
    if (this.#inUse > 0 || this.#queue.size > 0) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  #admit(): void {
    for (const next of this.#queue) {
      if (this.#inUse >= this.#share.allowance()) return;
      this.#inUse += 1;
      this.#queue.delete(next);
      next.resolve();
    }
  }

  #isFull(): boolean {
    return this.#share.waiting(this.#queue.size + 1, this.#inUse) > this.#limits.maxQueued;
  }

  #overloaded(): OverloadedError {
    const { maxInFlight, maxQueued } = this.#limits;
    return new OverloadedError(
      'TOOL_QUEUE_FULL',
      `Source ${this.#name} has ${maxInFlight} calls in flight (max_in_flight) and ${maxQueued} queued (max_queued). The call was not executed; retry later.`,
      { source: this.#name, max_in_flight: String(maxInFlight), max_queued: String(maxQueued) },
    );
  }
}
