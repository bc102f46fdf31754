import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConsumerInfo, ConsumerMessages, JsMsg } from '@nats-io/jetstream';
import { type BackoffOptions, backoffMs, isId } from '@writ/kernel';
import type { BusFailure, DurableOptions, Subscription } from '../bus.ts';
import { withHandlerTimeout } from '../handler-timeout.ts';
import { isRejection } from '../rejection.ts';
import { matchSubject } from '../subjects.ts';
import { type ConsumerPlan, ensureConsumer } from './consumers.ts';
import { eventIdOf, fromNats, type RawMessage } from './messages.ts';
import type { NatsSettings } from './options.ts';
import type { NatsSession } from './session.ts';
import { hasLostDeliveries, undeliveredMessages } from './undelivered.ts';

/** Number of messages in a pull request; the server still sends only one unacknowledged message at a time. */
const MAX_MESSAGES = 16;
/** Expiry of a pull request, ms. */
const REQUEST_EXPIRES_MS = 10_000;
/** Interval between two checks for undelivered messages, ms. */
const CHECK_MS = 3_000;

/**
 * A durable subscription: consumes from one JetStream consumer per stream, and continues in the new session after a
 * reconnect.
 */
export class DurableSubscription implements Subscription {
  readonly #plans: readonly ConsumerPlan[];
  readonly #options: DurableOptions;
  readonly #settings: NatsSettings;
  readonly #outside = AsyncLocalStorage.snapshot();
  readonly #ending = new AbortController();
  readonly #open = new Set<ConsumerMessages>();
  readonly #loops = new Set<Promise<void>>();
  #ended = false;

  constructor(plans: readonly ConsumerPlan[], options: DurableOptions, settings: NatsSettings) {
    this.#plans = plans;
    this.#options = options;
    this.#settings = settings;
  }

  /** Creates its consumers if they do not exist. */
  async ensure({ manager, version }: NatsSession): Promise<void> {
    const { ackWaitMs } = this.#settings;
    await Promise.all(
      this.#plans.map((plan) => ensureConsumer(manager, plan, { ackWaitMs, version })),
    );
  }

  /** Consumes messages for the duration of the session. */
  attach(session: NatsSession): void {
    for (const plan of this.#plans) {
      const loop = this.#outside(() => this.#follow(session, plan));
      this.#loops.add(loop);
      void loop.finally(() => this.#loops.delete(loop));
    }
  }

  async unsubscribe(): Promise<void> {
    this.#ended = true;
    this.#ending.abort();
    // Stops pulling before the current message is acknowledged; otherwise the server would deliver the next message to
    // this subscriber.
    for (const messages of this.#open) messages.stop();
    await Promise.all(this.#loops);
  }

  async #follow(session: NatsSession, plan: ConsumerPlan): Promise<void> {
    const { connection } = session;
    let failures = 0;
    while (!this.#ended && !connection.isClosed()) {
      try {
        await this.#consume(session, plan, () => {
          failures = 0;
        });
      } catch (error) {
        if (connection.isClosed() || this.#ended) return;
        this.#settings.onError(error, { durable: plan.durable });
      }
      if (this.#ended || connection.isClosed()) return;
      failures += 1;
      const delayMs = backoffMs(failures, retryBackoff(this.#settings));
      await sleep(delayMs, undefined, { signal: this.#ending.signal }).catch(() => undefined);
    }
  }

  async #consume(session: NatsSession, plan: ConsumerPlan, onMessage: () => void): Promise<void> {
    const { ackWaitMs } = this.#settings;
    const { manager, version } = session;
    const ackProgressMs = (await ensureConsumer(manager, plan, { ackWaitMs, version })) / 3;
    const consumer = await session.jetstream.consumers.get(plan.stream, plan.durable);
    await this.#redeliver(session, plan, await consumer.info());
    const messages = await consumer.consume({
      max_messages: MAX_MESSAGES,
      expires: REQUEST_EXPIRES_MS,
      // A restarted server may lose the request; missing heartbeats reveal that.
      idle_heartbeat: Math.max(500, Math.min(1_000, ackWaitMs)),
      abort_on_missing_resource: true,
    });
    this.#open.add(messages);
    if (this.#ended) messages.stop();
    const watch = setInterval(() => {
      // Stops consuming after lost deliveries, because the next pass begins with the undelivered messages.
      const stop = (info: ConsumerInfo): void => void (hasLostDeliveries(info) && messages.stop());
      consumer.info().then(stop, (error: unknown) => this.#settings.onError(error, plan));
    }, CHECK_MS);
    try {
      for await (const message of messages) {
        onMessage();
        await this.#handle(message, ackProgressMs);
      }
    } finally {
      clearInterval(watch);
      this.#open.delete(messages);
      messages.stop();
    }
  }

  /**
   * Handles undelivered messages before any later message.
   * @throws what the handler throws, unless it rejects the message as invalid
   */
  async #redeliver(session: NatsSession, plan: ConsumerPlan, info: ConsumerInfo): Promise<void> {
    for await (const { message, acknowledge } of undeliveredMessages(session, plan, info)) {
      if (this.#ended) return;
      const { subject, data, header: headers } = message;
      await this.#deliver({ subject, data, headers });
      acknowledge();
    }
  }

  /**
   * Calls the handler if the subject of the message matches. Returns false if the message is dropped: it has no id, or
   * the handler rejects it as invalid, and it would fail again after a redelivery.
   * @throws what the handler throws otherwise
   */
  async #deliver(raw: RawMessage): Promise<boolean> {
    const { subject, durable, handler } = this.#options;
    try {
      const message = fromNats(raw);
      if (!matchSubject(subject, message.subject)) return true;
      await withHandlerTimeout(durable, this.#settings.handlerTimeoutMs, handler(message));
      return true;
    } catch (error) {
      if (!isRejection(error)) throw error;
      this.#settings.onError(error, { ...this.#failureOf(raw), dropped: true });
      return false;
    }
  }

  #failureOf(raw: RawMessage): Partial<BusFailure> {
    const eventId = eventIdOf(raw);
    const { durable } = this.#options;
    // The sender chooses this header, so its value is reported only if it is an id.
    return { subject: raw.subject, durable, ...(isId(eventId) && { eventId }) };
  }

  async #handle(raw: JsMsg, ackProgressMs: number): Promise<void> {
    const progress = setInterval(() => respond(() => raw.working()), ackProgressMs);
    try {
      const isHandled = await this.#deliver(raw);
      respond(() => (isHandled ? raw.ack() : raw.term()));
    } catch (error) {
      this.#settings.onError(error, this.#failureOf(raw));
      // The message is redelivered and blocks later messages.
      respond(() => raw.nak(backoffMs(raw.info.deliveryCount, retryBackoff(this.#settings))));
    } finally {
      clearInterval(progress);
    }
  }
}

function retryBackoff({ retryBaseMs, retryMaxMs }: NatsSettings): BackoffOptions {
  return { baseMs: retryBaseMs, maxMs: retryMaxMs };
}

/** Responds to the server. Ignores a closed connection, because the server redelivers an unacknowledged message. */
function respond(send: () => void): void {
  try {
    send();
  } catch (error) {
    if (!(error instanceof Error && error.name === 'ClosedConnectionError')) throw error;
  }
}
