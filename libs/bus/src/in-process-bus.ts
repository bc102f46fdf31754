import { assertId, PreconditionError, UnavailableError } from '@writ/kernel';
import type {
  Bus,
  BusFailure,
  BusMessage,
  DurableOptions,
  LiveOptions,
  Subscription,
} from './bus.ts';
import { DurableConsumer } from './durable-consumer.ts';
import { LiveSubscriber } from './live-subscriber.ts';
import { LiveSubscribers } from './live-subscribers.ts';
import { isRejection } from './rejection.ts';
import { assertPattern, assertSubject, matchSubject } from './subjects.ts';

/** Options of the in-process bus. */
export interface InProcessBusOptions {
  /** Receives the error of every failed handler; must not throw. */
  readonly onError: (error: unknown, failure: BusFailure) => void;
  /**
   * Durable consumers that must have a subscriber. The bus stores nothing. While a required consumer has no subscriber,
   * publishing fails, so that the message remains in its outbox instead of being lost.
   */
  readonly requiredConsumers?: readonly string[];
  /** Time limit of a durable handler for one message, or for one batch in `handleAll`, ms; default 30 000. */
  readonly handlerTimeoutMs?: number;
}

/**
 * The bus of the embedded mode (SYS-5). It stores nothing, so `publish` resolves only when every durable consumer with
 * a matching subject has handled the message or rejected it as invalid. If one of them fails, the others still receive
 * the message, and `publish` rejects with UnavailableError BUS_DELIVERY_FAILED; the outbox relay then publishes the
 * message again.
 */
export function createInProcessBus(options: InProcessBusOptions): Bus {
  return new InProcessBus(options);
}

class InProcessBus implements Bus {
  readonly #options: InProcessBusOptions;
  readonly #durables = new Map<string, DurableConsumer>();
  readonly #live = new LiveSubscribers();
  #closed = false;

  constructor(options: InProcessBusOptions) {
    this.#options = options;
  }

  async publish(message: BusMessage): Promise<void> {
    this.#refuseClosed();
    assertSubject(message.subject);
    this.#refuseWithoutSubscribers();
    const shared = seal(message);
    const failures: { readonly durable: string; readonly error: unknown }[] = [];
    this.#deliverLive(shared);
    await Promise.all(
      Array.from(this.#durables.values(), async (consumer) => {
        if (!matchSubject(consumer.subject, shared.subject)) return;
        try {
          await consumer.deliver(shared);
        } catch (error) {
          const { name: durable } = consumer;
          const dropped = isRejection(error);
          if (!dropped) failures.push({ durable, error });
          this.#report(error, shared, { durable, ...(dropped && { dropped }) });
        }
      }),
    );
    if (failures.length > 0) throw notHandled(shared, failures);
  }

  async publishAll(messages: readonly BusMessage[]): Promise<void> {
    this.#refuseClosed();
    for (const { subject } of messages) assertSubject(subject);
    this.#refuseWithoutSubscribers();
    const shared = messages.map(seal);
    for (const message of shared) this.#deliverLive(message);
    const deliveries = await Promise.allSettled(
      Array.from(this.#durables.values(), async (consumer) => {
        const own = shared.filter(({ subject }) => matchSubject(consumer.subject, subject));
        if (own.length > 0) await consumer.deliverAll(own);
      }),
    );
    // The failing message and consumer are reported when the messages are published one by one.
    const failed = deliveries.find((delivery) => delivery.status === 'rejected');
    if (failed !== undefined) {
      throw new UnavailableError(
        'BUS_DELIVERY_FAILED',
        'A durable consumer failed to handle the messages.',
        {},
        { cause: failed.reason },
      );
    }
  }

  async subscribe(options: DurableOptions): Promise<Subscription> {
    this.#refuseClosed();
    const { durable, subject } = options;
    assertId(durable, 'durable');
    assertPattern(subject);
    const timeoutMs = this.#options.handlerTimeoutMs ?? 30_000;
    const consumer =
      this.#durables.get(durable) ?? new DurableConsumer(durable, subject, timeoutMs);
    if (consumer.subject !== subject) {
      throw new PreconditionError(
        'BUS_DURABLE_MISMATCH',
        `Durable consumer ${durable} exists with subject ${consumer.subject} instead of ${subject}.`,
        { durable },
      );
    }
    this.#durables.set(durable, consumer);
    return consumer.add(options);
  }

  hasSubscribers(): boolean {
    return this.#missing() === undefined;
  }

  publishLive(message: BusMessage): void {
    assertSubject(message.subject);
    if (!this.#closed) this.#deliverLive(seal(message));
  }

  subscribeLive(options: LiveOptions): Subscription {
    this.#refuseClosed();
    assertPattern(options.subject);
    const subscriber = new LiveSubscriber(options, (error, message) =>
      this.#report(error, message),
    );
    this.#live.add(subscriber);
    return {
      unsubscribe: async () => {
        this.#live.delete(subscriber);
        await subscriber.unsubscribe();
      },
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    const live = this.#live.all().map((subscriber) => subscriber.unsubscribe());
    const durable = Array.from(this.#durables.values(), (consumer) => consumer.idle());
    await Promise.all([...live, ...durable]);
  }

  #deliverLive(message: BusMessage): void {
    for (const subscriber of this.#live.matching(message.subject)) subscriber.offer(message);
  }

  #report(
    error: unknown,
    { eventId, subject }: BusMessage,
    more: Pick<BusFailure, 'durable' | 'dropped'> = {},
  ): void {
    this.#options.onError(error, { eventId, subject, ...more });
  }

  #refuseClosed(): void {
    if (this.#closed) throw new UnavailableError('BUS_CLOSED', 'The bus is closed.');
  }

  #missing(): string | undefined {
    return this.#options.requiredConsumers?.find(
      (durable) => this.#durables.get(durable)?.hasSubscribers !== true,
    );
  }

  #refuseWithoutSubscribers(): void {
    const missing = this.#missing();
    if (missing === undefined) return;
    throw new UnavailableError(
      'BUS_NO_SUBSCRIBER',
      `Durable consumer ${missing} has no subscriber.`,
      {
        durable: missing,
      },
    );
  }
}

function seal(message: BusMessage): BusMessage {
  return Object.freeze({ ...message, headers: Object.freeze({ ...message.headers }) });
}

function notHandled(
  { eventId }: BusMessage,
  failures: readonly { readonly durable: string; readonly error: unknown }[],
): UnavailableError {
  const durables = failures.map(({ durable }) => durable).join(', ');
  return new UnavailableError(
    'BUS_DELIVERY_FAILED',
    `Message ${eventId} was not handled by ${durables}.`,
    { event_id: eventId, durable: durables },
    { cause: failures[0]?.error },
  );
}
