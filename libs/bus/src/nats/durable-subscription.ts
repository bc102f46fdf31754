import { AsyncLocalStorage } from 'node:async_hooks';
import type { ConsumerInfo, ConsumerMessages, JsMsg } from '@nats-io/jetstream';
import type { BusMessage, DurableOptions, Subscription } from '../bus.ts';
import { matchSubject } from '../subjects.ts';
import { withinTime } from '../within-time.ts';
import { type ConsumerPlan, ensureConsumer } from './consumers.ts';
import { forgottenMessages, isForgetful } from './forgotten.ts';
import { fromNats } from './messages.ts';
import type { NatsSettings } from './options.ts';
import { Pause } from './pause.ts';
import { retryDelay } from './retry-delay.ts';
import type { NatsSession } from './session.ts';

/** How many messages may be asked for ahead; the server sends one at a time. */
const ASKED_AHEAD = 16;
/** Milliseconds after which they are asked for again. */
const ASKED_FOR_MS = 10_000;
/** Milliseconds between looks whether the server has forgotten something. */
const WATCH_EVERY_MS = 3_000;

/** A subscriber of a durable: takes messages in one session after the other. */
export class DurableSubscription implements Subscription {
  readonly #plans: readonly ConsumerPlan[];
  readonly #options: DurableOptions;
  readonly #settings: NatsSettings;
  readonly #outside = AsyncLocalStorage.snapshot();
  readonly #pause = new Pause();
  readonly #open = new Set<ConsumerMessages>();
  readonly #loops = new Set<Promise<void>>();
  #ended = false;

  constructor(plans: readonly ConsumerPlan[], options: DurableOptions, settings: NatsSettings) {
    this.#plans = plans;
    this.#options = options;
    this.#settings = settings;
  }

  /** Makes sure that its consumers are there. */
  async ensure({ manager, version }: NatsSession): Promise<void> {
    const { ackWaitMs } = this.#settings;
    await Promise.all(
      this.#plans.map((plan) => ensureConsumer(manager, plan, { ackWaitMs, version })),
    );
  }

  /** Takes messages for as long as the session lasts. */
  attach(session: NatsSession): void {
    for (const plan of this.#plans) {
      const loop = this.#outside(() => this.#follow(session, plan));
      this.#loops.add(loop);
      void loop.finally(() => this.#loops.delete(loop));
    }
  }

  async unsubscribe(): Promise<void> {
    this.#ended = true;
    this.#pause.end();
    // Before the message under way is acknowledged, else the server would send the next one here.
    for (const messages of this.#open) messages.stop();
    await Promise.all(this.#loops);
  }

  async #follow(session: NatsSession, plan: ConsumerPlan): Promise<void> {
    const { connection } = session;
    let failures = 0;
    while (!this.#ended && !connection.isClosed()) {
      try {
        await this.#take(session, plan, () => {
          failures = 0;
        });
      } catch (error) {
        if (connection.isClosed() || this.#ended) return;
        this.#settings.onError(error, { durable: plan.durable });
      }
      if (this.#ended || connection.isClosed()) return;
      failures += 1;
      await this.#pause.wait(retryDelay(failures, this.#settings));
    }
  }

  async #take(session: NatsSession, plan: ConsumerPlan, onMessage: () => void): Promise<void> {
    const { ackWaitMs } = this.#settings;
    const { manager, version } = session;
    const signEveryMs = (await ensureConsumer(manager, plan, { ackWaitMs, version })) / 3;
    const consumer = await session.jetstream.consumers.get(plan.stream, plan.durable);
    await this.#recall(session, plan, await consumer.info());
    const messages = await consumer.consume({
      max_messages: ASKED_AHEAD,
      expires: ASKED_FOR_MS,
      // A server that starts again may lose what it was asked; its silence tells.
      idle_heartbeat: Math.max(500, Math.min(1_000, ackWaitMs)),
      abort_on_missing_resource: true,
    });
    this.#open.add(messages);
    if (this.#ended) messages.stop();
    const watch = setInterval(() => {
      // Whoever begins anew looks for what was forgotten first.
      const stop = (info: ConsumerInfo): void => void (isForgetful(info) && messages.stop());
      consumer.info().then(stop, (error: unknown) => this.#settings.onError(error, plan));
    }, WATCH_EVERY_MS);
    try {
      for await (const message of messages) {
        onMessage();
        await this.#handle(message, signEveryMs);
      }
    } finally {
      clearInterval(watch);
      this.#open.delete(messages);
      messages.stop();
    }
  }

  /**
   * Handles what the server forgot; nothing later is taken before that is done.
   * @throws what the handler throws
   */
  async #recall(session: NatsSession, plan: ConsumerPlan, info: ConsumerInfo): Promise<void> {
    for await (const { message, acknowledge } of forgottenMessages(session, plan, info)) {
      if (this.#ended) return;
      const { subject, data, header: headers } = message;
      const given = this.#readOrReport({ subject, data, headers });
      if (given !== undefined) await this.#give(given);
      acknowledge();
    }
  }

  /** A message as it is given on; undefined for one without an id, which nobody can handle. */
  #readOrReport(raw: Parameters<typeof fromNats>[0]): BusMessage | undefined {
    try {
      return fromNats(raw);
    } catch (error) {
      const { subject } = raw;
      this.#settings.onError(error, { subject, durable: this.#options.durable });
      return undefined;
    }
  }

  /** Gives a message to the handler, if it is one of those that were asked for. */
  async #give(message: BusMessage): Promise<void> {
    const { subject, durable, handler } = this.#options;
    if (!matchSubject(subject, message.subject)) return;
    await withinTime(durable, this.#settings.handlerTimeoutMs, handler(message));
  }

  async #handle(raw: JsMsg, signEveryMs: number): Promise<void> {
    const { onError } = this.#settings;
    const { durable } = this.#options;
    const sign = setInterval(() => answer(() => raw.working()), signEveryMs);
    let message: BusMessage | undefined;
    try {
      message = fromNats(raw);
      await this.#give(message);
      answer(() => raw.ack());
    } catch (error) {
      const { subject } = raw;
      onError(error, { subject, durable, ...(message && { eventId: message.eventId }) });
      // What has no id can be handled by nobody; the rest is tried again, and holds up those behind it.
      if (message === undefined) answer(() => raw.term());
      else answer(() => raw.nak(retryDelay(raw.info.deliveryCount, this.#settings)));
    } finally {
      clearInterval(sign);
    }
  }
}

/** Tells the server of a message; when the connection is gone, it finds out by itself. */
function answer(tell: () => void): void {
  try {
    tell();
  } catch (error) {
    if (!(error instanceof Error && error.name === 'ClosedConnectionError')) throw error;
  }
}
