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

interface Gate {
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
  readonly #gates = new Map<string, Gate>();

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
    const gate = this.#gateOf(model.alias, limit);
    if (gate.inFlight < gate.share.allowance() && gate.queue.size === 0) gate.inFlight += 1;
    else await this.#wait(model, gate, request);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      gate.inFlight -= 1;
      if (gate.share.mayReuse()) admit(gate);
      else gate.share.changed();
    };
  }

  /**
   * Returns the numbers of running and waiting calls of a model in this process; zero for a model without
   * `maxInFlight`, whose calls are not counted.
   */
  loadOf(alias: string): { readonly inFlight: number; readonly waiting: number } {
    const gate = this.#gates.get(alias);
    return { inFlight: gate?.inFlight ?? 0, waiting: gate?.queue.size ?? 0 };
  }

  /** Releases the shares. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#gates.values(), ({ share }) => share.close()));
  }

  #gateOf(alias: string, limit: number): Gate {
    const known = this.#gates.get(alias);
    if (known !== undefined) {
      known.limit = limit;
      return known;
    }
    const queue = new FairQueue<Waiter>();
    const gate: Gate = {
      inFlight: 0,
      limit,
      queue,
      share: createSlotShare({
        store: this.#store,
        replicas: this.#store.replicas,
        name: alias,
        limit: () => gate.limit,
        user: {
          demand: () => ({ inUse: gate.inFlight, waiting: queue.size, weight: queue.weight }),
          granted: () => admit(gate),
          failed: (error) => rejectAll(queue, error),
        },
      }),
    };
    this.#gates.set(alias, gate);
    return gate;
  }

  async #wait(
    { alias, maxQueued }: ModelEntry,
    { queue, share, inFlight }: Gate,
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
    const leave = (): void => {
      if (queue.remove(waiter)) reject(signal.reason);
    };
    queue.add({ flow, weight, item: waiter });
    share.changed();
    signal.addEventListener('abort', leave, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }
}

/** Admits waiting calls while slots are free. */
function admit(gate: Gate): void {
  while (gate.inFlight < gate.share.allowance()) {
    const next = gate.queue.next();
    if (next === undefined) return;
    gate.inFlight += 1;
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
