import { assertId, PreconditionError, UnavailableError } from '@writ/kernel';
import type { Bus, BusMessage, DurableOptions, LiveOptions, Subscription } from './bus.ts';
import { DurableConsumer } from './durable-consumer.ts';
import { LiveSubscriber } from './live-subscriber.ts';
import { LiveSubscribers } from './live-subscribers.ts';
import { assertPattern, assertSubject, matchSubject } from './subjects.ts';

/** What a handler did not take, for the log: ids, never content. */
export interface BusFailure {
  readonly eventId: string;
  readonly subject: string;
  /** Name of the durable consumer; absent for a live subscriber. */
  readonly durable?: string;
}

/** How the in-process bus works. */
export interface InProcessBusOptions {
  /** Told of every handler that failed; must not throw. */
  readonly onError: (error: unknown, failure: BusFailure) => void;
  /**
   * Durable consumers that must be there before anything is taken. Nothing is stored here, so a
   * message that came before its consumer, or while it is away, would be lost; publishing fails
   * instead, and the message stays in its outbox.
   */
  readonly requiredConsumers?: readonly string[];
  /** Milliseconds that a durable handler may take over one message; default 30 000. */
  readonly handlerTimeoutMs?: number;
}

/**
 * The bus of the embedded mode (SYS-5). It stores nothing, so `publish` resolves only when every
 * durable consumer has taken the message. When one does not, the others still get it, and publish
 * rejects with UnavailableError BUS_DELIVERY_FAILED; the outbox relay then repeats it to all.
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
    this.#refuseUnattended();
    const shared = seal(message);
    const failures: { readonly durable: string; readonly error: unknown }[] = [];
    this.#offerLive(shared);
    await Promise.all(
      Array.from(this.#durables.values(), async (consumer) => {
        if (!matchSubject(consumer.subject, shared.subject)) return;
        try {
          await consumer.deliver(shared);
        } catch (error) {
          failures.push({ durable: consumer.name, error });
          this.#report(error, shared, consumer.name);
        }
      }),
    );
    if (failures.length > 0) throw notTaken(shared, failures);
  }

  async publishAll(messages: readonly BusMessage[]): Promise<void> {
    this.#refuseClosed();
    for (const { subject } of messages) assertSubject(subject);
    this.#refuseUnattended();
    const shared = messages.map(seal);
    for (const message of shared) this.#offerLive(message);
    const deliveries = await Promise.allSettled(
      Array.from(this.#durables.values(), async (consumer) => {
        const own = shared.filter(({ subject }) => matchSubject(consumer.subject, subject));
        if (own.length > 0) await consumer.deliverAll(own);
      }),
    );
    // Who did not take which, and why, is told when each is published by itself.
    const failed = deliveries.find((delivery) => delivery.status === 'rejected');
    if (failed !== undefined) {
      throw new UnavailableError(
        'BUS_DELIVERY_FAILED',
        'Not all messages were taken.',
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
        `The durable ${durable} is subscribed to ${consumer.subject} already, not to ${subject}.`,
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
    if (!this.#closed) this.#offerLive(seal(message));
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

  #offerLive(message: BusMessage): void {
    for (const subscriber of this.#live.lookingAt(message.subject)) subscriber.offer(message);
  }

  #report(error: unknown, { eventId, subject }: BusMessage, durable?: string): void {
    this.#options.onError(
      error,
      durable === undefined ? { eventId, subject } : { eventId, subject, durable },
    );
  }

  #refuseClosed(): void {
    if (this.#closed) throw new UnavailableError('BUS_CLOSED', 'The bus is closed.');
  }

  #missing(): string | undefined {
    return this.#options.requiredConsumers?.find(
      (durable) => this.#durables.get(durable)?.hasSubscribers !== true,
    );
  }

  #refuseUnattended(): void {
    const missing = this.#missing();
    if (missing === undefined) return;
    throw new UnavailableError('BUS_NO_SUBSCRIBER', `Nobody attends to ${missing} now.`, {
      durable: missing,
    });
  }
}

function seal(message: BusMessage): BusMessage {
  return Object.freeze({ ...message, headers: Object.freeze({ ...message.headers }) });
}

function notTaken(
  { eventId }: BusMessage,
  failures: readonly { readonly durable: string; readonly error: unknown }[],
): UnavailableError {
  const durables = failures.map(({ durable }) => durable).join(', ');
  return new UnavailableError(
    'BUS_DELIVERY_FAILED',
    `The message ${eventId} was not taken by ${durables}.`,
    { event_id: eventId, durable: durables },
    { cause: failures[0]?.error },
  );
}
