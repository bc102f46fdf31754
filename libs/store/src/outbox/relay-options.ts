import type { Clock } from '@writ/kernel';
import type { Store } from '../store.ts';
import type { BacklogWatchOptions } from './backlog-watch.ts';
import type { OutboxDatabase, OutboxMessage } from './outbox.ts';

/** What a relay could not do, for the log. */
export interface RelayFailure {
  /** The message that was not taken; absent when the store failed. */
  readonly eventId?: string;
  /** Failures in a row, this one included. */
  readonly attempt: number;
  /** Milliseconds until the next try. */
  readonly retryInMs: number;
}

/** How a relay works. */
export interface OutboxRelayOptions<DB extends OutboxDatabase> {
  readonly store: Store<DB>;
  /** Hands a message to the bus; resolves when the bus is answerable for it. */
  readonly publish: (message: Required<OutboxMessage>) => Promise<void>;
  /**
   * Hands over several at once, in their order. When it rejects, each is handed over by itself, those
   * again that the bus has taken already.
   */
  readonly publishAll?:
    | ((messages: readonly Required<OutboxMessage>[]) => Promise<void>)
    | undefined;
  /**
   * Whether anybody takes what is published now; default: always. While nobody does, nothing is
   * tried, which is no failure, and messages wait.
   */
  readonly hasSubscribers?: () => boolean;
  /** Told once when messages begin to wait for want of a taker, and once when that is over; must not throw. */
  readonly onSubscribersChange?: (hasSubscribers: boolean) => void;
  /** Told of every failure; must not throw. */
  readonly onError: (error: unknown, failure: RelayFailure) => void;
  readonly clock: Clock;
  /** Messages read and marked together; default 100. */
  readonly batch?: number;
  /**
   * Milliseconds from a wake-up to the read, as nextFlush counts them: what is committed meanwhile goes
   * together, and together with what other relays of this process wait for as long; default 0.
   */
  readonly flushIntervalMs?: number;
  /**
   * Milliseconds that an accepted message may stay unmarked, so that marks share a commit; a crash meanwhile publishes
   * it again under the same event id. Default 0: each pass writes its marks.
   */
  readonly markIntervalMs?: number;
  /** Milliseconds between looks when the relay is not woken; default 1 000. */
  readonly pollMs?: number;
  /** Milliseconds that the first retry waits at most, doubling from there; default 50. */
  readonly retryBaseMs?: number;
  /** Milliseconds that any retry waits at most; default 5 000. */
  readonly retryMaxMs?: number;
  /** Milliseconds that a published message is kept, so that a repeat is known; default an hour. */
  readonly keepMs?: number;
  /** Whom to tell when more waits than is usual; default: nobody. */
  readonly backlog?: BacklogWatchOptions;
}

/** Carries messages from the outbox to the bus, in order and at least once. */
export interface OutboxRelay {
  /** Begins with what a former process left behind. */
  start(): void;
  /** Says that something was committed; the relay looks within `flushIntervalMs`, unless it waits to retry. */
  wake(): void;
  /** As `wake`, but looks at once. */
  flushSoon(): void;
  /**
   * Looks at once, and resolves when nothing that was committed before the call is unpublished; works
   * without `start()`, too. Retries as long as it takes; rejects with UnavailableError RELAY_STOPPED when
   * the relay is stopped, and OUTBOX_NO_SUBSCRIBER when nobody takes what is left.
   */
  flush(): Promise<void>;
  /** Takes no further message; resolves when the one under way is marked. */
  stop(): Promise<void>;
}
