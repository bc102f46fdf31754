import { UnavailableError, WakeableLoop } from '@writ/kernel';
import { type Leadership, leadershipOf } from '../replicas/leadership.ts';
import type { Store } from '../store.ts';
import { BacklogMonitor } from './backlog-monitor.ts';
import { nextFlush } from './flush-interval.ts';
import type { OutboxDatabase } from './outbox.ts';
import { type PendingMessage, prunePublished, readPending } from './outbox-queries.ts';
import { PublishedMarks } from './published-marks.ts';
import type { OutboxRelay, OutboxRelayOptions } from './relay-options.ts';

const PRUNE_EVERY_MS = 60_000;
const PRUNE_ROWS = 1_000;
/** Poll interval of a standby relay while messages are unpublished, ms. */
const STANDBY_MS = 200;

/** The result of a pass; all but `done` leave messages in the outbox. */
type Outcome = 'done' | 'no subscriber' | 'more' | 'standby';

/**
 * Creates the relay of one outbox (HK-2). A message is marked after `publish` has resolved. After a crash between the
 * two steps, the message is published again under the same event id. A message that fails is retried with back-off and
 * full jitter, and blocks the messages after it to preserve the order.
 */
export function createOutboxRelay<DB extends OutboxDatabase>(
  options: OutboxRelayOptions<DB>,
): OutboxRelay {
  return new Relay(options);
}

class Relay<DB extends OutboxDatabase> implements OutboxRelay {
  readonly #options: OutboxRelayOptions<DB>;
  readonly #store: Store<OutboxDatabase>;
  /** Only one replica's relay publishes, because two would reorder messages. */
  readonly #leadership: Leadership;
  readonly #backlog: BacklogMonitor | undefined;
  readonly #marks: PublishedMarks;
  readonly #loop: WakeableLoop;
  #flushes: PromiseWithResolvers<void>[] = [];
  #isStarted = false;
  #isStopped = false;
  /** Whether the next pass waits for the flush interval. */
  #isWoken = false;
  /** Whether the latest pass found another replica's relay publishing. */
  #isStandby = false;
  #isFlushRequested = false;
  /** Set while the relay waits for the flush interval. */
  #endFlushWait: (() => void) | undefined;
  #withoutSubscribers = false;
  /** Event id of the message that is being published. */
  #publishing: string | undefined;
  /** Time of the last deletion of published messages, ms of the monotonic clock. */
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor(options: OutboxRelayOptions<DB>) {
    this.#options = options;
    this.#store = options.store as unknown as Store<OutboxDatabase>;
    this.#leadership = leadershipOf(this.#store.db, 'outbox relay');
    const { backlog, clock, markIntervalMs = 0, onError } = options;
    const { retryBaseMs = 50, retryMaxMs = 5_000 } = options;
    this.#marks = new PublishedMarks(this.#store, clock, markIntervalMs);
    this.#backlog = backlog && new BacklogMonitor(this.#store, clock, backlog);
    this.#loop = new WakeableLoop({
      pass: () => this.#pass(),
      intervalMs: Number.POSITIVE_INFINITY,
      backoff: { baseMs: retryBaseMs, maxMs: retryMaxMs },
      onError: (error, retry) => {
        const eventId = this.#publishing;
        onError(error, eventId === undefined ? retry : { ...retry, eventId });
      },
    });
  }

  start(): void {
    this.#isStarted = true;
    // Wakes the loop, because a flush may already have started it.
    this.#loop.wake();
    this.#loop.start();
  }

  wake(): void {
    // A standby relay polls, because the leader publishes.
    if (this.#isStandby) return;
    this.#isWoken = true;
    this.#loop.wake();
  }

  flushSoon(): void {
    this.#isFlushRequested = true;
    this.wake();
    this.#endFlushWait?.();
  }

  flush(): Promise<void> {
    if (this.#isStopped) return Promise.reject(stoppedError());
    const flush = Promise.withResolvers<void>();
    this.#flushes.push(flush);
    this.flushSoon();
    this.#loop.start();
    return flush.promise;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#endFlushWait?.();
    await this.#loop.stop();
    // If the marks cannot be written, the messages are published again under the same event ids.
    await this.#marks.write().catch(() => undefined);
    await this.#leadership.release();
    for (const { reject } of this.#flushes.splice(0)) reject(stoppedError());
  }

  /** Publishes one batch and writes the marks that are due; returns the pause after it, ms. */
  async #pass(): Promise<number | undefined> {
    if (!this.#isStarted && this.#flushes.length === 0) return undefined;
    const { pollMs = 1_000 } = this.#options;
    if (this.#isWoken) await this.#waitForFlush();
    if (this.#isStopped) return undefined;
    const asked = this.#flushes.length;
    this.#isWoken = false;
    this.#isFlushRequested = false;
    const outcome = await this.#publishAndMark();
    this.#isStandby = outcome === 'standby';
    if (outcome === 'more' || outcome === 'standby') {
      this.#isWoken = false;
      return outcome === 'more' ? 0 : Math.min(STANDBY_MS, pollMs);
    }
    for (const { resolve, reject } of this.#flushes.splice(0, asked)) {
      if (outcome === 'done') resolve();
      else reject(noSubscriberError());
    }
    await this.#prune();
    return Math.min(pollMs, this.#marks.dueInMs ?? pollMs);
  }

  async #publishAndMark(): Promise<Outcome> {
    const { accepted } = this.#marks;
    this.#publishing = undefined;
    try {
      // While marks cannot be written, publishes nothing more, because after a restart every unmarked message is
      // published again.
      if (this.#marks.isFull) await this.#marks.write();
      let outcome: Outcome;
      try {
        outcome = await this.#publishBatch();
      } catch (error) {
        await this.#writeMarks(accepted).catch(() => undefined);
        throw error;
      }
      await this.#writeMarks(accepted);
      return outcome;
    } finally {
      await this.#checkBacklog();
    }
  }

  /** @param before number of accepted messages before the pass */
  async #writeMarks(before: number): Promise<void> {
    if (this.#flushes.length > 0 || !this.#leadership.isValid()) await this.#marks.write();
    else await this.#marks.writeDue();
    if (this.#marks.accepted > before) this.#loop.resetBackoff();
  }

  async #checkBacklog(): Promise<void> {
    // Only the leader reports the backlog.
    if (this.#isStopped || !this.#leadership.isValid()) return;
    // If the store is unreadable, the pass has already reported the error.
    await this.#backlog?.check().catch(() => undefined);
  }

  /** Waits for the flush interval to collect messages, unless a flush was requested. */
  async #waitForFlush(): Promise<void> {
    const { flushIntervalMs = 0 } = this.#options;
    if (flushIntervalMs === 0 || this.#isStopped || this.#isFlushRequested) return;
    const ended = Promise.withResolvers<void>();
    this.#endFlushWait = ended.resolve;
    await Promise.race([nextFlush(flushIntervalMs), ended.promise]);
    this.#endFlushWait = undefined;
  }

  async #publishBatch(): Promise<Outcome> {
    const { publish, batch = 100 } = this.#options;
    const isLeader = await this.#leadership.acquire();
    const pending = await readPending(this.#store, isLeader ? batch : 1, this.#marks.positions);
    if (pending.length === 0) return 'done';
    if (!isLeader) return 'standby';
    if (!this.#hasSubscribers()) return 'no subscriber';
    for (const { position, message } of await this.#publishTogether(pending)) {
      if (this.#isStopped || !this.#leadership.isValid()) return 'more';
      this.#publishing = message.eventId;
      await publish(message);
      this.#publishing = undefined;
      this.#marks.add(position);
    }
    // A message that arrived after the read has woken the relay, so `done` does not delay it.
    return pending.length < batch ? 'done' : 'more';
  }

  /** Publishes the messages as a batch if possible; returns the messages that must be published one by one. */
  async #publishTogether(pending: readonly PendingMessage[]): Promise<readonly PendingMessage[]> {
    const { publishAll } = this.#options;
    if (publishAll === undefined || pending.length === 1 || this.#isStopped) return pending;
    try {
      await publishAll(pending.map(({ message }) => message));
    } catch {
      // Publishing the messages one by one finds the failing message and its error.
      return pending;
    }
    for (const { position } of pending) this.#marks.add(position);
    return [];
  }

  #hasSubscribers(): boolean {
    const { hasSubscribers, onSubscribersChange } = this.#options;
    const subscribed = hasSubscribers?.() !== false;
    if (subscribed === this.#withoutSubscribers) {
      this.#withoutSubscribers = !subscribed;
      onSubscribersChange?.(subscribed);
    }
    return subscribed;
  }

  async #prune(): Promise<void> {
    const { clock, keepMs = 3_600_000, isClockConfirmed, onError } = this.#options;
    const now = clock.monotonicMs();
    if (now - this.#prunedAt < Math.min(PRUNE_EVERY_MS, keepMs)) return;
    if (isClockConfirmed?.() === false) return;
    this.#prunedAt = now;
    try {
      const cutoff = new Date(clock.now().getTime() - keepMs);
      while (!this.#isStopped) {
        if ((await prunePublished(this.#store, cutoff, PRUNE_ROWS)) < PRUNE_ROWS) return;
      }
    } catch (error) {
      onError(error, { attempt: 1, retryInMs: PRUNE_EVERY_MS });
    }
  }
}

function noSubscriberError(): UnavailableError {
  return new UnavailableError(
    'OUTBOX_NO_SUBSCRIBER',
    'No subscriber is connected; the outbox was not drained.',
  );
}

function stoppedError(): UnavailableError {
  return new UnavailableError('RELAY_STOPPED', 'The outbox relay is stopped.');
}
