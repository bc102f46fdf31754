import { assertId, InvalidRequestError, PreconditionError, UnavailableError } from '@writ/kernel';
import type { Bus, BusMessage, DurableOptions, LiveOptions, Subscription } from '../bus.ts';
import { HOOK_STREAMS, type StreamPlan } from '../hook-streams.ts';
import { LiveSubscriber } from '../live-subscriber.ts';
import { assertPattern, assertSubject, matchSubject } from '../subjects.ts';
import { findConsumer, planConsumers } from './consumers.ts';
import { DurableSubscription } from './durable-subscription.ts';
import { connectionError, publishError } from './errors.ts';
import { NatsLink } from './link.ts';
import { LiveSubscription } from './live-subscription.ts';
import { toNatsHeaders } from './messages.ts';
import type { NatsBusOptions, NatsSettings } from './options.ts';
import type { NatsSession } from './session.ts';

/**
 * Creates the bus of the distributed mode on NATS JetStream (HK-2). Publishing resolves when the server has stored the
 * message or already has it. While the server is unreachable, publishing fails, so that messages remain in their
 * outboxes; subscriptions resume after the reconnect. If the server is unreachable at the start, the bus retries in the
 * background; an unsuitable server is rejected.
 *
 * `publish` and `subscribe` reject a subject that belongs to none of `streams` with INVALID_SUBJECT. A durable consumer
 * receives messages one at a time per stream, across all its subscribers; a message whose handler fails blocks later
 * messages until it is handled, unless the handler rejects it as invalid.
 *
 * @throws UnauthenticatedError BUS_CREDENTIALS_REJECTED, PermissionDeniedError BUS_PERMISSION_DENIED,
 *   PreconditionError INVALID_TLS_FILE, BUS_SERVER_TOO_OLD, BUS_JETSTREAM_DISABLED, BUS_STREAM_MISMATCH,
 *   BUS_FEATURE_UNSUPPORTED, BUS_SETTING_REJECTED, BUS_DURABLE_MISMATCH, BUS_CONSUMER_MISMATCH
 */
export async function createNatsBus(options: NatsBusOptions): Promise<Bus> {
  const bus = new NatsBus({
    streams: HOOK_STREAMS,
    createsStreams: true,
    streamBytes: 256 * 2 ** 20,
    replicas: 1,
    streamConfig: {},
    requiredConsumers: [],
    startTimeoutMs: 5_000,
    requestTimeoutMs: 5_000,
    handlerTimeoutMs: 30_000,
    ackWaitMs: 5_000,
    retryBaseMs: 100,
    retryMaxMs: 5_000,
    ...options,
  });
  await bus.open();
  return bus;
}

class NatsBus implements Bus {
  readonly #settings: NatsSettings;
  readonly #link: NatsLink;
  readonly #durables = new Set<DurableSubscription>();
  readonly #live = new Set<LiveSubscription>();
  readonly #publishing = new Set<Promise<unknown>>();
  readonly #subscribedStreams = new WeakMap<NatsSession, Set<string>>();
  #closed = false;

  constructor(settings: NatsSettings) {
    this.#settings = settings;
    this.#link = new NatsLink(settings, (session) => {
      for (const subscription of [...this.#durables, ...this.#live]) subscription.attach(session);
    });
  }

  open(): Promise<void> {
    return this.#link.open();
  }

  async publish(message: BusMessage): Promise<void> {
    this.#refuseClosed();
    assertSubject(message.subject);
    const stream = this.#streamOf(message.subject);
    const headers = toNatsHeaders(message);
    const { session } = this.#link;
    const publishing = this.#store(session, stream, message, headers);
    this.#publishing.add(publishing);
    try {
      await publishing;
    } catch (error) {
      throw publishError(error, message.eventId);
    } finally {
      this.#publishing.delete(publishing);
    }
  }

  async subscribe(options: DurableOptions): Promise<Subscription> {
    this.#refuseClosed();
    assertId(options.durable, 'durable');
    assertPattern(options.subject);
    const plans = planConsumers(this.#settings.streams, options.durable, options.subject);
    if (plans.length === 0) throw noStream(options.subject);
    const subscription = new DurableSubscription(plans, options, this.#settings);
    const session = this.#link.current;
    if (session !== undefined) await this.#ensure(subscription, session);
    this.#durables.add(subscription);
    // The session may have changed while the consumers were created. The callback of the link attaches the subscription
    // to later sessions.
    const current = this.#link.current;
    if (current !== undefined) subscription.attach(current);
    return {
      unsubscribe: async () => {
        this.#durables.delete(subscription);
        await subscription.unsubscribe();
      },
    };
  }

  /**
   * Returns true until the bus is closed: the server stores messages without a subscriber, and during an outage each
   * publish fails.
   */
  hasSubscribers(): boolean {
    return !this.#closed;
  }

  publishLive(message: BusMessage): void {
    assertSubject(message.subject);
    const headers = toNatsHeaders(message);
    const session = this.#link.current;
    if (this.#closed || session === undefined) return;
    session.live.publish(message, headers);
  }

  subscribeLive(options: LiveOptions): Subscription {
    this.#refuseClosed();
    assertPattern(options.subject);
    const { onError } = this.#settings;
    const subscriber = new LiveSubscriber(options, (error, { eventId, subject }) =>
      onError(error, { eventId, subject }),
    );
    const subscription = new LiveSubscription(subscriber, onError);
    this.#live.add(subscription);
    const session = this.#link.current;
    if (session !== undefined) subscription.attach(session);
    return {
      unsubscribe: async () => {
        this.#live.delete(subscription);
        await subscription.unsubscribe();
      },
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    const subscriptions = [...this.#durables, ...this.#live];
    await Promise.all(subscriptions.map((subscription) => subscription.unsubscribe()));
    await Promise.allSettled(this.#publishing);
    await this.#link.close();
  }

  async #store(
    session: NatsSession,
    stream: StreamPlan,
    { eventId, subject, payload }: BusMessage,
    headers: ReturnType<typeof toNatsHeaders>,
  ): Promise<void> {
    await this.#refuseWithoutConsumers(session, stream.name);
    // Does not set the expected-stream header, because it would be copied to the messages for observers and their
    // stream would reject them.
    const { stream: stored } = await session.jetstream.publish(subject, payload, {
      msgID: eventId,
      headers,
    });
    if (stored === stream.name) return;
    const message = `${subject} is stored by stream ${stored} instead of ${stream.name}.`;
    throw new PreconditionError('BUS_STREAM_MISMATCH', message, { stream: stored });
  }

  async #ensure(subscription: DurableSubscription, session: NatsSession): Promise<void> {
    try {
      await subscription.ensure(session);
    } catch (error) {
      const writError = connectionError(error, this.#settings.servers);
      // The subscription is attached after the next connect.
      if (!(writError instanceof UnavailableError)) throw writError;
      this.#settings.onError(writError, {});
    }
  }

  /**
   * Rejects a publish if a required durable consumer does not exist. A durable consumer is permanent, so one check per
   * session and stream is enough.
   */
  async #refuseWithoutConsumers(session: NatsSession, stream: string): Promise<void> {
    const known = this.#subscribedStreams.get(session) ?? new Set();
    this.#subscribedStreams.set(session, known);
    if (known.has(stream)) return;
    for (const durable of this.#settings.requiredConsumers) {
      if ((await findConsumer(session.manager, stream, durable)) !== undefined) continue;
      throw new UnavailableError(
        'BUS_NO_SUBSCRIBER',
        `Durable consumer ${durable} does not exist yet.`,
        {
          durable,
        },
      );
    }
    known.add(stream);
  }

  #streamOf(subject: string): StreamPlan {
    const found = this.#settings.streams.find(({ subjects }) =>
      subjects.some((own) => matchSubject(own, subject)),
    );
    if (found === undefined) throw noStream(subject);
    return found;
  }

  #refuseClosed(): void {
    if (this.#closed) throw new UnavailableError('BUS_CLOSED', 'The bus is closed.');
  }
}

function noStream(subject: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_SUBJECT', `Bad subject: no stream has ${subject}.`, {
    field: 'subject',
  });
}
