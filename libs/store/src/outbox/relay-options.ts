import type { Clock } from '@writ/kernel';
import type { Store } from '../store.ts';
import type { BacklogOptions } from './backlog-monitor.ts';
import type { OutboxDatabase, OutboxMessage } from './outbox.ts';

/** A failure of a relay, for the log. */
export interface RelayFailure {
  /** The message that was not accepted; absent if the store failed. */
  readonly eventId?: string;
  /** Number of consecutive failures. */
  readonly attempt: number;
  /** Milliseconds until the next attempt. */
  readonly retryInMs: number;
}

/** Options of a relay. */
export interface OutboxRelayOptions<DB extends OutboxDatabase> {
  readonly store: Store<DB>;
  /** Publishes a message; resolves when the bus has accepted it. */
  readonly publish: (message: Required<OutboxMessage>) => Promise<void>;
  /**
   * Publishes a batch in order. If it rejects, the messages are published one by one, including those that the bus
   * has already accepted.
   */
  readonly publishAll?:
    | ((messages: readonly Required<OutboxMessage>[]) => Promise<void>)
    | undefined;
  /**
   * Whether the bus has subscribers; default: always. Without subscribers nothing is published and messages remain in
   * the outbox; this is not a failure.
   */
  readonly hasSubscribers?: () => boolean;
  /** Called when messages start to wait for a subscriber, and when there is one again; must not throw. */
  readonly onSubscribersChange?: (hasSubscribers: boolean) => void;
  /** Receives every failure; must not throw. */
  readonly onError: (error: unknown, failure: RelayFailure) => void;
  readonly clock: Clock;
  /** Batch size; default 100. */
  readonly batch?: number;
  /**
   * Flush interval, ms; default 0. After a wake-up the relay waits for the next flush (see `nextFlush`) before it reads
   * the outbox, so that messages committed during the wait are published together and relays of this process flush
   * together.
   */
  readonly flushIntervalMs?: number;
  /**
   * Maximum time before an accepted message is marked as published, ms, so that marks share a commit. After a crash
   * before the mark, the message is published again under the same event id. Default 0: each pass writes its marks.
   */
  readonly markIntervalMs?: number;
  /** Poll interval without wake-ups, ms; default 1 000. */
  readonly pollMs?: number;
  /** Upper bound of the first retry delay, ms, which doubles with each attempt; default 50. */
  readonly retryBaseMs?: number;
  /** Upper bound of any retry delay, ms; default 5 000. */
  readonly retryMaxMs?: number;
  /** Retention of published messages for deduplication, ms; default one hour. */
  readonly keepMs?: number;
  /**
   * Whether the clock is confirmed; default: always. Published messages are deleted only while the clock is confirmed,
   * because a clock that is far ahead would cause recent messages to be deleted.
   */
  readonly isClockConfirmed?: () => boolean;
  /** Reports a large backlog; default: not reported. */
  readonly backlog?: BacklogOptions;
}

/** Publishes the messages of an outbox in order and at least once. */
export interface OutboxRelay {
  /** Starts publishing, first the messages that a previous process left in the outbox. */
  start(): void;
  /**
   * Notifies the relay of a commit. The relay publishes at the next flush (see `nextFlush`), unless it is backing off.
   */
  wake(): void;
  /** Like `wake`, but publishes at once. */
  flushSoon(): void;
  /**
   * Publishes at once, or after the current back-off; resolves when every message committed before the call is
   * published. Works without `start()`. Retries without limit. Rejects with UnavailableError RELAY_STOPPED if the relay
   * is stopped, and with OUTBOX_NO_SUBSCRIBER if unpublished messages remain and the bus has no subscriber.
   */
  flush(): Promise<void>;
  /**
   * Stops publishing after the message or batch in flight; resolves when the accepted messages are marked, or writing
   * the marks has failed.
   */
  stop(): Promise<void>;
}
