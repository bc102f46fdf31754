import { AsyncLocalStorage } from 'node:async_hooks';
import type { BusMessage, LiveOptions, Subscription } from './bus.ts';

const DEFAULT_CAPACITY = 256;

/** A live subscriber with a bounded queue. */
export class LiveSubscriber implements Subscription {
  readonly subject: string;
  readonly #handler: LiveOptions['handler'];
  readonly #capacity: number;
  readonly #onError: (error: unknown, message: BusMessage) => void;
  readonly #queue: BusMessage[] = [];
  // As with NATS, a handler does not run in the span or transaction of the publisher.
  readonly #outside = AsyncLocalStorage.snapshot();
  #missed = 0;
  #delivering: Promise<void> | undefined;
  #ended = false;

  constructor(options: LiveOptions, onError: (error: unknown, message: BusMessage) => void) {
    this.subject = options.subject;
    this.#handler = options.handler;
    this.#capacity = Math.max(1, options.capacity ?? DEFAULT_CAPACITY);
    this.#onError = onError;
  }

  /** Queues a message without waiting; a full queue drops its oldest message. */
  offer(message: BusMessage): void {
    if (this.#ended) return;
    if (this.#queue.length >= this.#capacity) {
      this.#queue.shift();
      this.#missed += 1;
    }
    this.#queue.push(message);
    this.#delivering ??= this.#outside(() => this.#deliver());
  }

  async unsubscribe(): Promise<void> {
    this.#ended = true;
    this.#queue.length = 0;
    await this.#delivering;
  }

  async #deliver(): Promise<void> {
    // The handler must not run on the publisher's stack.
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
    this.#delivering = undefined;
  }
}
