import { OverloadedError, type Priority } from '@writ/kernel';
import type { ModelEntry } from '../domain/catalog/model.ts';
import { FairQueue } from '../domain/queue/fair-queue.ts';

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
}

interface Gate {
  inFlight: number;
  readonly queue: FairQueue<Waiter>;
}

/** The calls that may be at a model at the same time; the others wait in a fair, bounded queue (SUP-3). */
export class ModelSlots {
  readonly #gates = new Map<string, Gate>();

  /**
   * Waits for a slot of the model. Resolves with the function that gives it back.
   * @throws OverloadedError MODEL_QUEUE_FULL; the signal's reason when it aborts
   */
  async enter(model: ModelEntry, request: SlotRequest): Promise<ReleaseSlot> {
    request.signal.throwIfAborted();
    const limit = model.maxInFlight;
    if (limit === undefined) return () => undefined;
    const gate = this.#gateOf(model.alias);
    if (gate.inFlight < limit && gate.queue.size === 0) gate.inFlight += 1;
    else await this.#wait(model, gate, request);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      const next = gate.queue.next();
      if (next === undefined) gate.inFlight -= 1;
      else next.enter();
    };
  }

  /** Calls at a model, and calls that wait for it. */
  loadOf(alias: string): { readonly inFlight: number; readonly waiting: number } {
    const gate = this.#gates.get(alias);
    return { inFlight: gate?.inFlight ?? 0, waiting: gate?.queue.size ?? 0 };
  }

  #gateOf(alias: string): Gate {
    const gate = this.#gates.get(alias) ?? { inFlight: 0, queue: new FairQueue<Waiter>() };
    this.#gates.set(alias, gate);
    return gate;
  }

  async #wait(
    { alias, maxQueued }: ModelEntry,
    { queue }: Gate,
    { flow, weight, signal }: SlotRequest,
  ): Promise<void> {
    if (queue.size >= maxQueued) {
      throw new OverloadedError(
        'MODEL_QUEUE_FULL',
        `${queue.size} calls wait for model ${alias}; the limit is max_queued ${maxQueued}.`,
        { model: alias, limit: String(maxQueued) },
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { enter: resolve };
    const leave = (): void => {
      if (queue.remove(waiter)) reject(signal.reason);
    };
    queue.add({ flow, weight, item: waiter });
    signal.addEventListener('abort', leave, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }
}
