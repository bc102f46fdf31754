import { AsyncLocalStorage } from 'node:async_hooks';
import { UnavailableError } from '@writ/kernel';
import { type Lead, leadOf } from '../replicas/leadership.ts';
import type { Store } from '../store.ts';
import { Alarm } from './alarm.ts';
import { BacklogWatch } from './backlog-watch.ts';
import { nextFlush } from './flush-interval.ts';
import type { OutboxDatabase } from './outbox.ts';
import { type PendingMessage, prunePublished, readPending } from './outbox-queries.ts';
import { PublishedMarks } from './published-marks.ts';
import type { OutboxRelay, OutboxRelayOptions } from './relay-options.ts';

const PRUNE_EVERY_MS = 60_000;
const PRUNE_ROWS = 1_000;
/** How soon a relay that waits for another's looks again while something is unpublished. */
const STANDBY_MS = 200;

/**
 * Creates the relay of one outbox (HK-2). A message is marked after `publish` has resolved; a crash
 * between the two publishes it again under the same event id. A failing message holds up those
 * behind it, for order is kept, and is tried again with back-off and full jitter.
 */
export function createOutboxRelay<DB extends OutboxDatabase>(
  options: OutboxRelayOptions<DB>,
): OutboxRelay {
  return new Relay(options);
}

class Relay<DB extends OutboxDatabase> implements OutboxRelay {
  readonly #options: OutboxRelayOptions<DB>;
  readonly #store: Store<OutboxDatabase>;
  /** Of the relays of all replicas one publishes, for two would mix the order of what they publish. */
  readonly #lead: Lead;
  readonly #backlog: BacklogWatch | undefined;
  readonly #marks: PublishedMarks;
  readonly #alarm = new Alarm();
  // A wake-up comes from inside a request; the loop must not inherit its transaction or its span.
  readonly #outside = AsyncLocalStorage.snapshot();
  #flushes: PromiseWithResolvers<void>[] = [];
  #loop: Promise<void> | undefined;
  #started = false;
  #stopped = false;
  #woken = false;
  #unattended = false;
  #retrying = false;
  #flushRequested = false;
  /** There while the relay lingers. */
  #endLinger: (() => void) | undefined;
  /** The message that the bus is being given. */
  #publishing: string | undefined;
  #failures = 0;
  #prunedAt = 0;

  constructor(options: OutboxRelayOptions<DB>) {
    this.#options = options;
    this.#store = options.store as unknown as Store<OutboxDatabase>;
    this.#lead = leadOf(this.#store.db, 'outbox relay');
    const { backlog, clock, markIntervalMs = 0 } = options;
    this.#marks = new PublishedMarks(this.#store, clock, markIntervalMs);
    this.#backlog = backlog && new BacklogWatch(this.#store, clock, backlog);
  }

  start(): void {
    this.#started = true;
    this.#ensureLoop();
  }

  wake(): void {
    this.#woken = true;
    if (!this.#retrying) this.#alarm.ring();
  }

  flushSoon(): void {
    this.#flushRequested = true;
    this.wake();
    this.#endLinger?.();
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
    this.#endLinger?.();
    this.#alarm.ring();
    await this.#loop;
    // A mark that cannot be written costs a repeat under the same event id.
    await this.#marks.write().catch(() => undefined);
    await this.#lead.release();
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
      await this.#lookAtBacklog();
      if (outcome === 'more' || outcome === 'failed') continue;
      const flushes = this.#flushes.splice(0, asked);
      for (const { resolve, reject } of flushes) {
        if (outcome === 'through') resolve();
        else reject(unattendedError());
      }
      await this.#prune();
      if (!this.#woken && !this.#stopped && this.#started) {
        const pollMs = this.#options.pollMs ?? 1_000;
        await this.#alarm.sleep(Math.min(pollMs, this.#marks.dueInMs ?? pollMs));
      }
      if (this.#woken) await this.#linger();
    }
    this.#loop = undefined;
  }

  async #lookAtBacklog(): Promise<void> {
    // Those who only stand by would say the same once more.
    if (this.#stopped || !this.#lead.isCertain()) return;
    // A store that cannot be read has been told of by the pass.
    await this.#backlog?.look().catch(() => undefined);
  }

  /** Lets others commit what can be taken together, unless somebody cannot wait. */
  async #linger(): Promise<void> {
    const { flushIntervalMs = 0 } = this.#options;
    if (flushIntervalMs === 0 || this.#stopped || this.#flushRequested) return;
    const ended = Promise.withResolvers<void>();
    this.#endLinger = ended.resolve;
    await Promise.race([nextFlush(flushIntervalMs), ended.promise]);
    this.#endLinger = undefined;
  }

  /** Publishes one batch and writes the marks that are due; after a failure, reports it and waits. */
  async #pass(): Promise<'through' | 'unattended' | 'more' | 'failed'> {
    let outcome: 'through' | 'unattended' | 'more' | 'standby' = 'more';
    let failure: { readonly error: unknown; readonly eventId?: string | undefined } | undefined;
    const { accepted } = this.#marks;
    try {
      outcome = await this.#publishBatch();
    } catch (error) {
      failure = { error, eventId: this.#publishing };
    }
    try {
      if (this.#flushes.length > 0 || !this.#lead.isCertain()) await this.#marks.write();
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
    await this.#waitUnmoved(Math.min(STANDBY_MS, this.#options.pollMs ?? STANDBY_MS));
    return 'more';
  }

  async #publishBatch(): Promise<'through' | 'unattended' | 'more' | 'standby'> {
    const { publish, batch = 100 } = this.#options;
    this.#publishing = undefined;
    const leads = await this.#lead.take();
    const pending = await readPending(this.#store, leads ? batch : 1, this.#marks.cursor);
    if (pending.length === 0) return 'through';
    if (!leads) return 'standby';
    if (!this.#hasSubscribers()) return 'unattended';
    for (const { position, message } of await this.#publishTogether(pending)) {
      if (this.#stopped || !this.#lead.isCertain()) return 'more';
      this.#publishing = message.eventId;
      await publish(message);
      this.#publishing = undefined;
      this.#marks.add(position);
    }
    // A message that arrived in the meantime has woken the relay.
    return pending.length < batch ? 'through' : 'more';
  }

  /** Hands over what can be handed over at once; returns the messages to hand over one by one. */
  async #publishTogether(pending: readonly PendingMessage[]): Promise<readonly PendingMessage[]> {
    const { publishAll } = this.#options;
    if (publishAll === undefined || pending.length === 1 || this.#stopped) return pending;
    try {
      await publishAll(pending.map(({ message }) => message));
    } catch {
      // Which of them is at fault, and why, shows when each goes by itself.
      return pending;
    }
    for (const { position } of pending) this.#marks.add(position);
    return [];
  }

  #hasSubscribers(): boolean {
    const { hasSubscribers, onSubscribersChange } = this.#options;
    const subscribed = hasSubscribers?.() !== false;
    if (subscribed === this.#unattended) {
      this.#unattended = !subscribed;
      onSubscribersChange?.(subscribed);
    }
    return subscribed;
  }

  async #retryLater(error: unknown, eventId: string | undefined): Promise<void> {
    const { onError, retryBaseMs = 50, retryMaxMs = 5_000 } = this.#options;
    this.#failures += 1;
    const ceiling = Math.min(retryMaxMs, retryBaseMs * 2 ** (this.#failures - 1));
    const retryInMs = Math.ceil(Math.random() * ceiling);
    const failure = { attempt: this.#failures, retryInMs };
    onError(error, eventId === undefined ? failure : { ...failure, eventId });
    await this.#waitUnmoved(retryInMs);
  }

  /** Waits, even if the relay is woken. */
  async #waitUnmoved(ms: number): Promise<void> {
    if (this.#stopped) return;
    this.#retrying = true;
    await this.#alarm.sleep(ms);
    this.#retrying = false;
  }

  async #prune(): Promise<void> {
    const { clock, keepMs = 3_600_000, onError } = this.#options;
    const now = clock.now().getTime();
    if (now - this.#prunedAt < Math.min(PRUNE_EVERY_MS, keepMs)) return;
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

function unattendedError(): UnavailableError {
  return new UnavailableError('OUTBOX_NO_SUBSCRIBER', 'Nobody takes what the outbox holds now.');
}

function stoppedError(): UnavailableError {
  return new UnavailableError('RELAY_STOPPED', 'The outbox relay was stopped.');
}
