import { OverloadedError, type Priority } from '@writ/kernel';
import { createSlotShare, type SlotShare } from '@writ/store';
import type { ModelEntry } from '../../domain/catalog/catalog.ts';
import { FairQueue } from '../../domain/queue/fair-queue.ts';
import type { MeterStore } from '../../store/meter-store.ts';

/** Releases a slot. Idempotent. */
export type ReleaseSlot = () => void;

/** Request for a slot. */
export interface SlotRequest {
  /** Flow of the fair queue: the agent. */
  readonly flow: string;
  readonly weight: Priority;
  /** Removes the request from the queue when aborted. */
  readonly signal: AbortSignal;
}

interface Waiter {
  readonly admit: () => void;
  readonly reject: (error: unknown) => void;
}

interface Limiter {
  inFlight: number;
  limit: number;
  readonly queue: FairQueue<Waiter>;
  readonly share: SlotShare;
}

/**
 * Limits the concurrent calls per model across all replicas; further calls wait in a fair, bounded
 * queue (SUP-3).
 */
export class ModelSlots {
  readonly #store: MeterStore;
  readonly #limiters = new Map<string, Limiter>();

  /** @param store the store in which replicas lease their shares */
  constructor(store: MeterStore) {
    this.#store = store;
  }

  /**
   * Acquires a slot of the model and resolves to its release function.
   * @throws OverloadedError MODEL_QUEUE_FULL; the reason of an aborted signal; UnavailableError
   *   when the store is unavailable
   */
  async acquire(model: ModelEntry, request: SlotRequest): Promise<ReleaseSlot> {
    request.signal.throwIfAborted();
    const limit = model.maxInFlight;
    if (limit === undefined) return () => undefined;
    const limiter = this.#limiterOf(model.alias, limit);
    if (limiter.inFlight < limiter.share.allowance() && limiter.queue.size === 0)
      limiter.inFlight += 1;
    else await this.#wait(model, limiter, request);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      limiter.inFlight -= 1;
      if (limiter.share.mayReuse()) admit(limiter);
      else limiter.share.changed();
    };
  }

  /**
   * Returns the numbers of running and waiting calls of a model in this process; zero for a model without
   * `maxInFlight`, whose calls are not counted.
   */
  loadOf(alias: string): { readonly inFlight: number; readonly waiting: number } {
    const limiter = this.#limiters.get(alias);
    return { inFlight: limiter?.inFlight ?? 0, waiting: limiter?.queue.size ?? 0 };
  }

  /** Releases the shares. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#limiters.values(), ({ share }) => share.close()));
  }

  #limiterOf(alias: string, limit: number): Limiter {
    const known = this.#limiters.get(alias);
    if (known !== undefined) {
      known.limit = limit;
      return known;
    }
    const queue = new FairQueue<Waiter>();
    const limiter: Limiter = {
      inFlight: 0,
      limit,
      queue,
      share: createSlotShare({
        store: this.#store,
        replicas: this.#store.replicas,
        name: alias,
        limit: () => limiter.limit,
        user: {
          demand: () => ({ inUse: limiter.inFlight, waiting: queue.size, weight: queue.weight }),
          granted: () => admit(limiter),
          failed: (error) => rejectAll(queue, error),
        },
      }),
    };
    this.#limiters.set(alias, limiter);
    return limiter;
  }

  async #wait(
    { alias, maxQueued }: ModelEntry,
    { queue, share, inFlight }: Limiter,
    { flow, weight, signal }: SlotRequest,
  ): Promise<void> {
    // Number of waiting calls of all replicas, including this call unless a slot is free for it.
    const waiting = share.waiting(queue.size + 1, inFlight);
    if (waiting > maxQueued) {
      throw new OverloadedError(
        'MODEL_QUEUE_FULL',
        `The queue of model ${alias} is full: ${waiting - 1} calls waiting (max_queued ${maxQueued}).`,
        { model: alias, limit: String(maxQueued) },
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { admit: resolve, reject };
    const onAbort = (): void => {
      if (queue.remove(waiter)) reject(signal.reason);
    };
    queue.add({ flow, weight, item: waiter });
    share.changed();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}

/** Admits waiting calls while slots are free. */
function admit(limiter: Limiter): void {
  while (limiter.inFlight < limiter.share.allowance()) {
    const next = limiter.queue.next();
    if (next === undefined) return;
    limiter.inFlight += 1;
    next.admit();
  }
}

function rejectAll(queue: FairQueue<Waiter>, error: unknown): void {
  for (;;) {
    const next = queue.next();
    if (next === undefined) return;
    next.reject(error);
  }
}
