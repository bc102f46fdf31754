import type { Subscription as NatsSubscription } from '@nats-io/transport-node';
import type { Subscription } from '../bus.ts';
import type { LiveSubscriber } from '../live-subscriber.ts';
import { fromNats } from './messages.ts';
import type { NatsSettings } from './options.ts';
import type { NatsSession } from './session.ts';

/** A live subscription over successive sessions. */
export class LiveSubscription implements Subscription {
  readonly #subscriber: LiveSubscriber;
  readonly #onError: NatsSettings['onError'];
  #subscription: NatsSubscription | undefined;
  #ended = false;

  constructor(subscriber: LiveSubscriber, onError: NatsSettings['onError']) {
    this.#subscriber = subscriber;
    this.#onError = onError;
  }

  /** Subscribes for the duration of the session. */
  attach({ connection }: NatsSession): void {
    if (this.#ended) return;
    const { subject } = this.#subscriber;
    const subscription = connection.subscribe(subject, {
      callback: (error, message) => {
        // The reason is reported below, when the subscription closes.
        if (error !== null) return;
        try {
          this.#subscriber.offer(fromNats(message));
        } catch (failure) {
          this.#onError(failure, { subject: message.subject });
        }
      },
    });
    this.#subscription = subscription;
    void subscription.closed.then((error) => {
      if (error instanceof Error && !this.#ended) this.#onError(error, { subject });
    });
  }

  async unsubscribe(): Promise<void> {
    this.#ended = true;
    this.#subscription?.unsubscribe();
    await this.#subscriber.unsubscribe();
  }
}
