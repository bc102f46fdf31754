import { OverloadedError } from '@writ/kernel';

/** How many calls of one source may be under way, and how many may wait (TG-6). */
export interface SlotLimits {
  readonly maxInFlight: number;
  readonly maxQueued: number;
}

/**
 * The places of one source, first come, first served. A call waits for its place before its intent
 * is recorded, so one that gets none leaves no trace (TG-8).
 */
export class Slots {
  readonly #name: string;
  readonly #limits: SlotLimits;
  readonly #queue = new Set<PromiseWithResolvers<void>>();
  #taken = 0;

  /** @param name the source's, for messages */
  constructor(name: string, limits: SlotLimits) {
    this.#name = name;
    this.#limits = limits;
  }

  /**
   * Waits for a place; give it back by calling the result, once.
   * @throws OverloadedError OVERLOADED when too many wait; the reason of `signal` when it aborts
   */
  async acquire(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const { maxInFlight, maxQueued } = this.#limits;
    if (this.#taken >= maxInFlight) {
      if (this.#queue.size >= maxQueued) throw this.#overloaded();
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

  async #wait(signal: AbortSignal): Promise<void> {
    const place = Promise.withResolvers<void>();
    this.#queue.add(place);
    const leave = () => {
      if (this.#queue.delete(place)) place.reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      await place.promise;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  /** Hands the place to whoever waits longest. */
  #release(): void {
    const [next] = this.#queue;
    if (next === undefined) {
      this.#taken -= 1;
      return;
    }
    this.#queue.delete(next);
    next.resolve();
  }

  #overloaded(): OverloadedError {
    const { maxInFlight, maxQueued } = this.#limits;
    return new OverloadedError(
      'OVERLOADED',
      `The source ${this.#name} runs ${maxInFlight} calls and ${maxQueued} more wait; the limits are max_in_flight and max_queued. Nothing was executed; try again later.`,
      { source: this.#name, max_in_flight: String(maxInFlight), max_queued: String(maxQueued) },
    );
  }
}
