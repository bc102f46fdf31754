import { AsyncLocalStorage } from 'node:async_hooks';
import type { ConsumerMessages, JsMsg } from '@nats-io/jetstream';
import type { BusMessage, DurableOptions, Subscription } from '../bus.ts';
import { matchSubject } from '../subjects.ts';
import { withinTime } from '../within-time.ts';
import { type ConsumerPlan, ensureConsumer } from './consumers.ts';
import { fromNats } from './messages.ts';
import type { NatsSettings } from './options.ts';
import { Pause } from './pause.ts';
import { retryDelay } from './retry-delay.ts';
import type { NatsSession } from './session.ts';

/** How many messages may be asked for ahead; the server sends one at a time. */
const ASKED_AHEAD = 16;
/** Milliseconds after which they are asked for again. */
const ASKED_FOR_MS = 10_000;

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
    const messages = await consumer.consume({
      max_messages: ASKED_AHEAD,
      expires: ASKED_FOR_MS,
      // A server that starts again may lose what it was asked; its silence tells.
      idle_heartbeat: Math.max(500, Math.min(1_000, ackWaitMs)),
      abort_on_missing_resource: true,
    });
    this.#open.add(messages);
    if (this.#ended) messages.stop();
    try {
      for await (const message of messages) {
        onMessage();
        await this.#handle(message, signEveryMs);
      }
    } finally {
      this.#open.delete(messages);
      messages.stop();
    }
  }

  async #handle(raw: JsMsg, signEveryMs: number): Promise<void> {
    const { handlerTimeoutMs, onError } = this.#settings;
    const { durable } = this.#options;
    const sign = setInterval(() => answer(() => raw.working()), signEveryMs);
    let message: BusMessage | undefined;
    try {
      message = fromNats(raw);
      if (matchSubject(this.#options.subject, message.subject)) {
        await withinTime(durable, handlerTimeoutMs, this.#options.handler(message));
      }
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
