import { AsyncLocalStorage } from 'node:async_hooks';
import { UnavailableError } from '@writ/kernel';
import type { BusMessage, DurableOptions, Subscription } from './bus.ts';
import { withinTime } from './within-time.ts';

type Handler = DurableOptions['handler'];

/** One durable consumer: the subscribers of one name, who share its messages between them. */
export class DurableConsumer {
  readonly name: string;
  readonly subject: string;
  readonly #timeoutMs: number;
  readonly #handlers: Handler[] = [];
  readonly #underWay = new Set<Promise<void>>();

  constructor(name: string, subject: string, timeoutMs: number) {
    this.name = name;
    this.subject = subject;
    this.#timeoutMs = timeoutMs;
  }

  /** Whether somebody is there to take messages. */
  get attended(): boolean {
    return this.#handlers.length > 0;
  }

  /** Adds a subscriber. */
  add(options: DurableOptions): Subscription {
    // As over NATS, a handler does not run in the span or transaction of whoever publishes.
    const outside = AsyncLocalStorage.snapshot();
    const handler: Handler = (message) => outside(options.handler, message);
    this.#handlers.push(handler);
    return {
      unsubscribe: async () => {
        const index = this.#handlers.indexOf(handler);
        if (index >= 0) this.#handlers.splice(index, 1);
        await this.idle();
      },
    };
  }

  /** Resolves when the handler has; rejects when it throws, hangs, or nobody is there. */
  async deliver(message: BusMessage): Promise<void> {
    const handler = this.#handlers.shift();
    if (handler === undefined) {
      throw new UnavailableError('BUS_UNATTENDED', `Nobody attends to ${this.name} now.`);
    }
    this.#handlers.push(handler);
    const handling = withinTime(this.name, this.#timeoutMs, handler(message));
    this.#underWay.add(handling);
    try {
      await handling;
    } finally {
      this.#underWay.delete(handling);
    }
  }

  /** Resolves when no delivery is under way. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }
}
