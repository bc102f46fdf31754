import { AsyncLocalStorage } from 'node:async_hooks';
import { backoffMs, UnavailableError } from '@writ/kernel';
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

/**
 * Creates the relay of one outbox (HK-2). A message is marked after `publish` has resolved; a crash
 * between the two publishes it again under the same event id. A failing message blocks those behind it,
 * because the order is kept, and is retried with back-off and full jitter.
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
  readonly #pause = new Pause();
  // A wake-up comes from within a request; the loop must not inherit its transaction or span.
  readonly #outside = AsyncLocalStorage.snapshot();
  #flushes: PromiseWithResolvers<void>[] = [];
  #loop: Promise<void> | undefined;
  #started = false;
  #stopped = false;
  #woken = false;
  #withoutSubscribers = false;
  #retrying = false;
  #flushRequested = false;
  /** Set while the relay waits for the flush interval. */
  #endFlushWait: (() => void) | undefined;
  /** The message that is being published. */
  #publishing: string | undefined;
  #failures = 0;
  #prunedAt = 0;

  constructor(options: OutboxRelayOptions<DB>) {
    this.#options = options;
    this.#store = options.store as unknown as Store<OutboxDatabase>;
    this.#leadership = leadershipOf(this.#store.db, 'outbox relay');
    const { backlog, clock, markIntervalMs = 0 } = options;
    this.#marks = new PublishedMarks(this.#store, clock, markIntervalMs);
    this.#backlog = backlog && new BacklogMonitor(this.#store, clock, backlog);
  }

  start(): void {
    this.#started = true;
    this.#ensureLoop();
  }

  wake(): void {
    this.#woken = true;
    if (!this.#retrying) this.#pause.end();
  }

  flushSoon(): void {
    this.#flushRequested = true;
    this.wake();
    this.#endFlushWait?.();
  }

  flush(): Promise<void> {
    if (this.#stopped) return Promise.reject(stoppedError());
    const flush = Promise.withResolvers<void>();
    this.#flushes.push(flush);
    this.#ensureLoop();
    this.flushSoon();
    return flush.promise;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#endFlushWait?.();
    this.#pause.end();
    await this.#loop;
    // A mark that cannot be written costs a repeat under the same event id.
    await this.#marks.write().catch(() => undefined);
    await this.#leadership.release();
    for (const { reject } of this.#flushes.splice(0)) reject(stoppedError());
  }

  #ensureLoop(): void {
    if (!this.#stopped) this.#loop ??= this.#outside(() => this.#run());
  }

  async #run(): Promise<void> {
    while (!this.#stopped && (this.#started || this.#flushes.length > 0)) {
      const asked = this.#flushes.length;
      this.#woken = false;
      this.#flushRequested = false;
      const outcome = await this.#pass();
      await this.#checkBacklog();
      if (outcome === 'more' || outcome === 'failed') continue;
      const flushes = this.#flushes.splice(0, asked);
      for (const { resolve, reject } of flushes) {
        if (outcome === 'done') resolve();
        else reject(noSubscriberError());
      }
      await this.#prune();
      if (!this.#woken && !this.#stopped && this.#started) {
        const pollMs = this.#options.pollMs ?? 1_000;
        await this.#pause.sleep(Math.min(pollMs, this.#marks.dueInMs ?? pollMs));
      }
      if (this.#woken) await this.#waitForFlush();
    }
    this.#loop = undefined;
  }

  async #checkBacklog(): Promise<void> {
    // A standby relay would repeat the report of the leader.
    if (this.#stopped || !this.#leadership.isValid()) return;
    // The pass has reported an unreadable store.
    await this.#backlog?.check().catch(() => undefined);
  }

  /** Waits for the flush interval to collect messages, unless a flush was requested. */
  async #waitForFlush(): Promise<void> {
    const { flushIntervalMs = 0 } = this.#options;
    if (flushIntervalMs === 0 || this.#stopped || this.#flushRequested) return;
    const ended = Promise.withResolvers<void>();
    this.#endFlushWait = ended.resolve;
    await Promise.race([nextFlush(flushIntervalMs), ended.promise]);
    this.#endFlushWait = undefined;
  }

  /** Publishes one batch and writes the marks that are due; after a failure, reports it and waits. */
  async #pass(): Promise<'done' | 'no subscriber' | 'more' | 'failed'> {
    let outcome: 'done' | 'no subscriber' | 'more' | 'standby' = 'more';
    let failure: { readonly error: unknown; readonly eventId?: string | undefined } | undefined;
    const { accepted } = this.#marks;
    try {
      outcome = await this.#publishBatch();
    } catch (error) {
      failure = { error, eventId: this.#publishing };
    }
    try {
      if (this.#flushes.length > 0 || !this.#leadership.isValid()) await this.#marks.write();
      else await this.#marks.writeDue();
      if (this.#marks.accepted > accepted) this.#failures = 0;
    } catch (error) {
      failure ??= { error };
    }
    if (failure !== undefined) {
      await this.#retryLater(failure.error, failure.eventId);
      return 'failed';
    }
    if (outcome !== 'standby') return outcome;
    // The leader publishes. It may die, so its backlog is read again soon.
    await this.#backOff(Math.min(STANDBY_MS, this.#options.pollMs ?? STANDBY_MS));
    return 'more';
  }

  async #publishBatch(): Promise<'done' | 'no subscriber' | 'more' | 'standby'> {
    const { publish, batch = 100 } = this.#options;
    this.#publishing = undefined;
    const isLeader = await this.#leadership.acquire();
    const pending = await readPending(this.#store, isLeader ? batch : 1, this.#marks.cursor);
    if (pending.length === 0) return 'done';
    if (!isLeader) return 'standby';
    if (!this.#hasSubscribers()) return 'no subscriber';
    for (const { position, message } of await this.#publishTogether(pending)) {
      if (this.#stopped || !this.#leadership.isValid()) return 'more';
      this.#publishing = message.eventId;
      await publish(message);
      this.#publishing = undefined;
      this.#marks.add(position);
    }
    // A message that arrived in the meantime has woken the relay.
    return pending.length < batch ? 'done' : 'more';
  }

  /** Publishes the messages as a batch if possible; returns those to publish one by one. */
  async #publishTogether(pending: readonly PendingMessage[]): Promise<readonly PendingMessage[]> {
    const { publishAll } = this.#options;
    if (publishAll === undefined || pending.length === 1 || this.#stopped) return pending;
    try {
      await publishAll(pending.map(({ message }) => message));
    } catch {
      // The failing message and its error show when the messages are published one by one.
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

  async #retryLater(error: unknown, eventId: string | undefined): Promise<void> {
    const { onError, retryBaseMs = 50, retryMaxMs = 5_000 } = this.#options;
    this.#failures += 1;
    const retryInMs = backoffMs(this.#failures, { baseMs: retryBaseMs, maxMs: retryMaxMs });
    const failure = { attempt: this.#failures, retryInMs };
    onError(error, eventId === undefined ? failure : { ...failure, eventId });
    await this.#backOff(retryInMs);
  }

  /** Waits even if the relay is woken. */
  async #backOff(ms: number): Promise<void> {
    if (this.#stopped) return;
    this.#retrying = true;
    await this.#pause.sleep(ms);
    this.#retrying = false;
  }

  async #prune(): Promise<void> {
    const { clock, keepMs = 3_600_000, isClockConfirmed, onError } = this.#options;
    const now = clock.now().getTime();
    if (Math.abs(now - this.#prunedAt) < Math.min(PRUNE_EVERY_MS, keepMs)) return;
    if (isClockConfirmed?.() === false) return;
    this.#prunedAt = now;
    try {
      const cutoff = new Date(now - keepMs);
      while (!this.#stopped) {
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

/** A pause of one waiter that can be ended early. */
class Pause {
  #end: (() => void) | undefined;

  /** Resolves after `ms` milliseconds or at {@link Pause.end}; does not keep the process alive. */
  async sleep(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms).unref();
    this.#end = resolve;
    await promise;
    this.#end = undefined;
    clearTimeout(timer);
  }

  end(): void {
    this.#end?.();
  }
}
