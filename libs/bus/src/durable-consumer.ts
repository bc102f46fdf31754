import { AsyncLocalStorage } from 'node:async_hooks';
import { UnavailableError } from '@writ/kernel';
import type { BusMessage, DurableOptions, Subscription } from './bus.ts';
import { withinTime } from './within-time.ts';

interface Subscriber {
  readonly handler: DurableOptions['handler'];
  readonly handleAll: NonNullable<DurableOptions['handleAll']> | undefined;
}

/** One durable consumer: the subscribers of one name, who share its messages between them. */
export class DurableConsumer {
  readonly name: string;
  readonly subject: string;
  readonly #timeoutMs: number;
  readonly #subscribers: Subscriber[] = [];
  readonly #underWay = new Set<Promise<void>>();

  constructor(name: string, subject: string, timeoutMs: number) {
    this.name = name;
    this.subject = subject;
    this.#timeoutMs = timeoutMs;
  }

  /** Whether somebody is there to take messages. */
  get hasSubscribers(): boolean {
    return this.#subscribers.length > 0;
  }

  /** Adds a subscriber. */
  add(options: DurableOptions): Subscription {
    // As over NATS, a handler does not run in the span or transaction of whoever publishes.
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

  /** Resolves when the handler has; rejects when it throws, hangs, or nobody is there. */
  async deliver(message: BusMessage): Promise<void> {
    await this.#noting(this.#within(this.#next().handler(message)));
  }

  /**
   * Resolves when a subscriber has taken all of them, in their order; rejects as {@link deliver}, and
   * some may have been taken then.
   */
  async deliverAll(messages: readonly BusMessage[]): Promise<void> {
    const { handler, handleAll } = this.#next();
    if (handleAll !== undefined) return await this.#noting(this.#within(handleAll(messages)));
    const each = async (): Promise<void> => {
      for (const message of messages) await this.#within(handler(message));
    };
    await this.#noting(each());
  }

  /** The subscriber whose turn it is. */
  #next(): Subscriber {
    const subscriber = this.#subscribers.shift();
    if (subscriber === undefined) {
      throw new UnavailableError('BUS_NO_SUBSCRIBER', `Nobody attends to ${this.name} now.`);
    }
    this.#subscribers.push(subscriber);
    return subscriber;
  }

  async #within(work: Promise<void>): Promise<void> {
    await withinTime(this.name, this.#timeoutMs, work);
  }

  async #noting(delivery: Promise<void>): Promise<void> {
    this.#underWay.add(delivery);
    try {
      await delivery;
    } finally {
      this.#underWay.delete(delivery);
    }
  }

  /** Resolves when no delivery is under way. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }
}
