import { AsyncLocalStorage } from 'node:async_hooks';
import type { BusMessage, LiveOptions, Subscription } from './bus.ts';

const DEFAULT_CAPACITY = 256;

/** One live subscriber with its bounded queue. */
export class LiveSubscriber implements Subscription {
  readonly subject: string;
  readonly #handler: LiveOptions['handler'];
  readonly #capacity: number;
  readonly #onError: (error: unknown, message: BusMessage) => void;
  readonly #queue: BusMessage[] = [];
  // As over NATS, a handler does not run in the span or transaction of whoever publishes.
  readonly #outside = AsyncLocalStorage.snapshot();
  #missed = 0;
  #pumping: Promise<void> | undefined;
  #ended = false;

  constructor(options: LiveOptions, onError: (error: unknown, message: BusMessage) => void) {
    this.subject = options.subject;
    this.#handler = options.handler;
    this.#capacity = Math.max(1, options.capacity ?? DEFAULT_CAPACITY);
    this.#onError = onError;
  }

  /** Queues a message, in place of the oldest when the queue is full; never waits. */
  offer(message: BusMessage): void {
    if (this.#ended) return;
    if (this.#queue.length >= this.#capacity) {
      this.#queue.shift();
      this.#missed += 1;
    }
    this.#queue.push(message);
    this.#pumping ??= this.#outside(() => this.#pump());
  }

  async unsubscribe(): Promise<void> {
    this.#ended = true;
    this.#queue.length = 0;
    await this.#pumping;
  }

  async #pump(): Promise<void> {
    // The publisher must not run a stranger's handler on its own stack.
    await Promise.resolve();
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      const missed = this.#missed;
      this.#missed = 0;
      try {
        await this.#handler(next, missed);
      } catch (error) {
        this.#onError(error, next);
      }
    }
    this.#pumping = undefined;
  }
}
