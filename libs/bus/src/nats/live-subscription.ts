import type { Subscription as NatsSubscription } from '@nats-io/transport-node';
import type { Subscription } from '../bus.ts';
import type { LiveSubscriber } from '../live-subscriber.ts';
import { fromNats } from './messages.ts';
import type { NatsSettings } from './options.ts';
import type { NatsSession } from './session.ts';

/** Shows a live subscriber what passes, in one session after the other. */
export class LiveSubscription implements Subscription {
  readonly #subscriber: LiveSubscriber;
  readonly #onError: NatsSettings['onError'];
  #looking: NatsSubscription | undefined;
  #ended = false;

  constructor(subscriber: LiveSubscriber, onError: NatsSettings['onError']) {
    this.#subscriber = subscriber;
    this.#onError = onError;
  }

  /** Looks for as long as the session lasts. */
  attach({ connection }: NatsSession): void {
    if (this.#ended) return;
    const { subject } = this.#subscriber;
    const looking = connection.subscribe(subject, {
      callback: (error, message) => {
        // Why a subscription ended is told below.
        if (error !== null) return;
        try {
          this.#subscriber.offer(fromNats(message));
        } catch (failure) {
          this.#onError(failure, { subject: message.subject });
        }
      },
    });
    this.#looking = looking;
    void looking.closed.then((error) => {
      if (error instanceof Error && !this.#ended) this.#onError(error, { subject });
    });
  }

  async unsubscribe(): Promise<void> {
    this.#ended = true;
    this.#looking?.unsubscribe();
    await this.#subscriber.unsubscribe();
  }
}
