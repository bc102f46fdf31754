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
  #limits: SlotLimits;
  readonly #queue = new Set<PromiseWithResolvers<void>>();
  #taken = 0;
  #idle: PromiseWithResolvers<void> | undefined;

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

  /** Sets other limits; who has a place keeps it. */
  resize({ maxInFlight, maxQueued }: SlotLimits): void {
    this.#limits = { maxInFlight, maxQueued };
    while (this.#taken < maxInFlight && this.#queue.size > 0) {
      this.#taken += 1;
      this.#release();
    }
  }

  /** Resolves when nobody has a place or waits for one. */
  async idle(): Promise<void> {
    if (this.#taken === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
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

  /** Hands the place to whoever waits longest, unless there are fewer places by now. */
  #release(): void {
    const [next] = this.#queue;
    if (next === undefined || this.#taken > this.#limits.maxInFlight) {
      this.#taken -= 1;
      if (this.#taken > 0) return;
      this.#idle?.resolve();
      this.#idle = undefined;
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
