import { OverloadedError } from '@writ/kernel';
import type { SlotShare, SlotUser } from '@writ/store';

/** How many calls of one source may be under way, and how many may wait (TG-6). */
export interface SlotLimits {
  readonly maxInFlight: number;
  readonly maxQueued: number;
}

/** Makes this process's share of places that all replicas have together. */
export type ShareOf = (name: string, limit: () => number, user: SlotUser) => SlotShare;

/**
 * The places of one source, first come, first served; of replicas, each serves its own, and they share
 * the places by how many wait there. A call waits for its place before its intent
 * is recorded, so one that gets none leaves no trace (TG-8).
 */
export class Slots {
  readonly #name: string;
  readonly #share: SlotShare;
  #limits: SlotLimits;
  readonly #queue = new Set<PromiseWithResolvers<void>>();
  #taken = 0;
  #idle: PromiseWithResolvers<void> | undefined;

  /** @param name the source's, for messages */
  constructor(name: string, limits: SlotLimits, shareOf: ShareOf) {
    this.#name = name;
    this.#limits = limits;
    this.#share = shareOf(name, () => this.#limits.maxInFlight, {
      demand: () => ({
        inUse: this.#taken,
        waiting: this.#queue.size,
        weight: this.#queue.size,
      }),
      granted: () => this.#admit(),
      failed: (error) => {
        for (const waiting of this.#queue) waiting.reject(error);
        this.#queue.clear();
        this.#sayIfIdle();
      },
    });
  }

  /**
   * Waits for a place; give it back by calling the result, once.
   * @throws OverloadedError TOOL_QUEUE_FULL when too many wait; the reason of `signal` when it aborts
   */
  async acquire(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#taken >= this.#share.allowance() || this.#queue.size > 0) {
      if (this.#isFull()) throw this.#overloaded();
      await this.#wait(signal);
    } else {
      this.#taken += 1;
    }
    let held = true;
    return () => {
      if (held) this.#release();
      held = false;
    };
  }

  /** Sets other limits; who has a place keeps it. */
  resize({ maxInFlight, maxQueued }: SlotLimits): void {
    this.#limits = { maxInFlight, maxQueued };
    this.#admit();
  }

  /** Gives this process's share back. */
  async close(): Promise<void> {
    await this.#share.close();
  }

  /** Resolves when nobody has a place or waits for one. */
  async idle(): Promise<void> {
    if (this.#taken === 0 && this.#queue.size === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const place = Promise.withResolvers<void>();
    this.#queue.add(place);
    this.#share.changed();
    const leave = () => {
      if (!this.#queue.delete(place)) return;
      place.reject(signal.reason);
      this.#sayIfIdle();
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      await place.promise;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  /** Hands the place to whoever waits longest, unless there are fewer places by now, or others have their turn. */
  #release(): void {
    this.#taken -= 1;
    if (this.#share.mayReuse()) this.#admit();
    else this.#share.changed();
    this.#sayIfIdle();
  }

  #sayIfIdle(): void {
    if (this.#taken > 0 || this.#queue.size > 0) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  #admit(): void {
    for (const next of this.#queue) {
      if (this.#taken >= this.#share.allowance()) return;
      this.#taken += 1;
      this.#queue.delete(next);
      next.resolve();
    }
  }

  #isFull(): boolean {
    return this.#share.waiting(this.#queue.size + 1, this.#taken) > this.#limits.maxQueued;
  }

  #overloaded(): OverloadedError {
    const { maxInFlight, maxQueued } = this.#limits;
    return new OverloadedError(
      'TOOL_QUEUE_FULL',
      `The source ${this.#name} runs ${maxInFlight} calls and ${maxQueued} more wait; the limits are max_in_flight and max_queued. Nothing was executed; try again later.`,
      { source: this.#name, max_in_flight: String(maxInFlight), max_queued: String(maxQueued) },
    );
  }
}
