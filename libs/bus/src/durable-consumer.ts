import { AsyncLocalStorage } from 'node:async_hooks';
import { UnavailableError } from '@writ/kernel';
import type { BusMessage, DurableOptions, Subscription } from './bus.ts';
import { withHandlerTimeout } from './handler-timeout.ts';

interface Subscriber {
  readonly handler: DurableOptions['handler'];
  readonly handleAll: NonNullable<DurableOptions['handleAll']> | undefined;
}

/** A durable consumer of the in-process bus: the subscribers of one name, which share its messages. */
export class DurableConsumer {
  readonly name: string;
  readonly subject: string;
  readonly #timeoutMs: number;
  readonly #subscribers: Subscriber[] = [];
  readonly #inFlight = new Set<Promise<void>>();

  constructor(name: string, subject: string, timeoutMs: number) {
    this.name = name;
    this.subject = subject;
    this.#timeoutMs = timeoutMs;
  }

  /** Whether the consumer has a subscriber. */
  get hasSubscribers(): boolean {
    return this.#subscribers.length > 0;
  }

  /** Adds a subscriber. */
  add(options: DurableOptions): Subscription {
    // As with NATS, a handler does not run in the span or transaction of the publisher.
    const outside = AsyncLocalStorage.snapshot();
    const { handler, handleAll } = options;
    const subscriber: Subscriber = {
      handler: (message) => outside(handler, message),
      handleAll: handleAll && ((messages) => outside(handleAll, messages)),
    };
    this.#subscribers.push(subscriber);
    return {
      unsubscribe: async () => {
        const index = this.#subscribers.indexOf(subscriber);
        if (index >= 0) this.#subscribers.splice(index, 1);
        await this.idle();
      },
    };
  }

  /**
   * Delivers a message to the next subscriber. Resolves when the handler has finished; rejects if it throws or times
   * out, or if there is no subscriber.
   */
  async deliver(message: BusMessage): Promise<void> {
    await this.#tracked(this.#within(this.#next().handler(message)));
  }

  /**
   * Delivers a batch in order. Rejects like {@link deliver}; some messages may already have been handled.
   */
  async deliverAll(messages: readonly BusMessage[]): Promise<void> {
    const { handler, handleAll } = this.#next();
    if (handleAll !== undefined) return await this.#tracked(this.#within(handleAll(messages)));
    const each = async (): Promise<void> => {
      for (const message of messages) await this.#within(handler(message));
    };
    await this.#tracked(each());
  }

  /** The next subscriber, round robin. */
  #next(): Subscriber {
    const subscriber = this.#subscribers.shift();
    if (subscriber === undefined) {
      throw new UnavailableError(
        'BUS_NO_SUBSCRIBER',
        `Durable consumer ${this.name} has no subscriber.`,
      );
    }
    this.#subscribers.push(subscriber);
    return subscriber;
  }

  async #within(work: Promise<void>): Promise<void> {
    await withHandlerTimeout(this.name, this.#timeoutMs, work);
  }

  async #tracked(delivery: Promise<void>): Promise<void> {
    this.#inFlight.add(delivery);
    try {
      await delivery;
    } finally {
      this.#inFlight.delete(delivery);
    }
  }

  /** Resolves when no delivery is in flight. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#inFlight);
  }
}
