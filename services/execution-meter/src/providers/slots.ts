import { OverloadedError, type Priority } from '@writ/kernel';
import { createSlotShare, type SlotShare } from '@writ/store';
import type { ModelEntry } from '../domain/catalog/model.ts';
import { FairQueue } from '../domain/queue/fair-queue.ts';
import type { MeterStore } from '../store/meter-store.ts';

/** Gives a slot back; calling it again changes nothing. */
export type ReleaseSlot = () => void;

/** Who asks for a slot. */
export interface SlotRequest {
  /** The agent whose share it is taken from. */
  readonly flow: string;
  readonly weight: Priority;
  /** Leaves the queue when it aborts. */
  readonly signal: AbortSignal;
}

interface Waiter {
  readonly enter: () => void;
  readonly refuse: (error: unknown) => void;
}

interface Gate {
  inFlight: number;
  limit: number;
  readonly queue: FairQueue<Waiter>;
  readonly share: SlotShare;
}

/**
 * The calls that may be at a model at the same time, at all replicas together; the others wait in a fair,
 * bounded queue (SUP-3).
 */
export class ModelSlots {
  readonly #store: MeterStore;
  readonly #gates = new Map<string, Gate>();

  /** @param store where replicas lease their shares */
  constructor(store: MeterStore) {
    this.#store = store;
  }

  /**
   * Waits for a slot of the model. Resolves with the function that gives it back.
   * @throws OverloadedError MODEL_QUEUE_FULL; the signal's reason when it aborts; UnavailableError
   *   when the replicas' shares cannot be asked for
   */
  async enter(model: ModelEntry, request: SlotRequest): Promise<ReleaseSlot> {
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

  /** Calls at a model, and calls that wait for it, of this process. */
  loadOf(alias: string): { readonly inFlight: number; readonly waiting: number } {
    const gate = this.#gates.get(alias);
    return { inFlight: gate?.inFlight ?? 0, waiting: gate?.queue.size ?? 0 };
  }

  /** Gives the shares back. */
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
          failed: (error) => refuse(queue, error),
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
    // With this one: it does not wait if there is a slot that nobody has leased yet.
    const waiting = share.waiting(queue.size + 1, inFlight);
    if (waiting > maxQueued) {
      throw new OverloadedError(
        'MODEL_QUEUE_FULL',
        `${waiting - 1} calls wait for model ${alias}; the limit is max_queued ${maxQueued}.`,
        { model: alias, limit: String(maxQueued) },
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { enter: resolve, refuse: reject };
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

/** Lets in whoever is next, as long as there are slots. */
function admit(gate: Gate): void {
  while (gate.inFlight < gate.share.allowance()) {
    const next = gate.queue.next();
    if (next === undefined) return;
    gate.inFlight += 1;
    next.enter();
  }
}

function refuse(queue: FairQueue<Waiter>, error: unknown): void {
  for (;;) {
    const next = queue.next();
    if (next === undefined) return;
    next.refuse(error);
  }
}
