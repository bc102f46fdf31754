import { createHash } from 'node:crypto';
import { newId } from '@writ/kernel';
import { PostgresSession, type SessionSettings } from '../postgres/postgres-session.ts';
import type { Claim, Replicas } from './replicas.ts';

/**
 * Idle timeout after which the server ends a session and releases its locks, for example the session of a paused
 * process, ms.
 */
const IDLE_TIMEOUT_MS = 15_000;
/** Time for which a session is valid after the start of its last successful renewal, even if the network fails, ms. */
const VALID_MS = 10_000;
const RENEW_MS = 4_000;
/**
 * Sends all notifications of one turn of the event loop in one transaction, because each transaction with a
 * notification wakes every listening session of the database.
 */
const NOTIFY = 'select pg_notify($1, payload) from json_array_elements_text($2::json) as payload';
/** Interval between two checks of the session. */
const CHECK_MS = 500;
/** Time for a process to reconnect after a broken connection or a server restart before it is considered dead, ms. */
export const GRACE_MS = 3_000;
/**
 * Maximum time between two checks that count as consecutive, ms. After a longer gap the measurement of an absence
 * starts again, because the process may have been alive in between.
 */
const FORGET_ABSENCE_MS = 10_000;

/** Times of the first and the last of consecutive checks at which a process was absent. */
interface Absence {
  readonly since: number;
  readonly lastAt: number;
}

/**
 * Replicas that share a PostgreSQL schema. Each replica holds advisory locks in a separate session. The server releases
 * them at once when the process dies, and after `IDLE_TIMEOUT_MS` when it is paused or disconnected.
 */
export class SessionReplicas implements Replicas {
  readonly id = newId('rep');
  readonly shared = true;
  readonly #settings: SessionSettings;
  readonly #channel: string;
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #absent = new Map<string, Absence>();
  readonly #claimed = new Set<string>();
  readonly #hints = new Set<string>();
  #session: PostgresSession | undefined;
  #opening: Promise<PostgresSession> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #renewalStartedAt = 0;
  /** Start of the last renewal to which the server responded. */
  #renewedAt = Number.NEGATIVE_INFINITY;
  #stopped = false;

  constructor(settings: SessionSettings) {
    this.#settings = settings;
    this.#channel = `writ_${createHash('sha256').update(settings.schema).digest('hex').slice(0, 24)}`;
  }

  async start(): Promise<void> {
    await this.#open();
    this.#timer = setInterval(() => this.#renew(), CHECK_MS);
    this.#timer.unref();
  }

  isVisible(): boolean {
    return this.#session !== undefined && this.#isValid(this.#session);
  }

  async findDead(ids: Iterable<string>): Promise<ReadonlySet<string>> {
    const dead = new Set<string>();
    const session = await this.#open();
    for (const id of new Set(ids)) {
      if (id === this.id) continue;
      // A shared lock, so that checks do not block each other; released with the statement.
      const { text } = await session.run(
        `select pg_try_advisory_xact_lock_shared(${lockOf(`replica ${id}`)})`,
      );
      if (text !== 't') this.#absent.delete(id);
      else if (this.#absentMs(id) >= GRACE_MS) dead.add(id);
    }
    return dead;
  }

  /** Records that a process is absent; returns the time since the first check of the current absence, ms. */
  #absentMs(id: string): number {
    const now = performance.now();
    for (const [other, { lastAt }] of this.#absent) {
      if (now - lastAt >= FORGET_ABSENCE_MS) this.#absent.delete(other);
    }
    const since = this.#absent.get(id)?.since ?? now;
    this.#absent.set(id, { since, lastAt: now });
    return now - since;
  }

  async claim(name: string): Promise<Claim | undefined> {
    // Checked here, because the same session could acquire the lock a second time.
    if (this.#claimed.has(name)) return undefined;
    this.#claimed.add(name);
    let session: PostgresSession;
    try {
      session = await this.#open();
      const { text } = await session.run(`select pg_try_advisory_lock(${lockOf(`claim ${name}`)})`);
      if (text !== 't') throw new ClaimedByOther();
    } catch (error) {
      this.#claimed.delete(name);
      if (error instanceof ClaimedByOther) return undefined;
      throw error;
    }
    let held = true;
    return {
      isHeld: () => held && this.#isValid(session),
      release: async () => {
        if (!held) return;
        held = false;
        this.#claimed.delete(name);
        if (session.broken) return;
        // If the session breaks now, the server releases the lock as well.
        await session
          .run(`select pg_advisory_unlock(${lockOf(`claim ${name}`)})`)
          .catch(() => undefined);
      },
    };
  }

  hint(topic: string): void {
    if (this.#hints.size === 0) setImmediate(() => this.#sendHints());
    this.#hints.add(nameOf(topic));
  }

  onHint(topic: string, listener: () => void): () => void {
    const name = nameOf(topic);
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(name);
    };
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#opening?.catch(() => undefined);
    await this.#session?.close();
  }

  #sendHints(): void {
    const payloads = [...this.#hints].map((name) => `${this.id} ${name}`);
    this.#hints.clear();
    const session = this.#session;
    if (session === undefined || session.broken || this.#stopped) return;
    session
      .query(NOTIFY, [this.#channel, JSON.stringify(payloads)])
      // Ignored: the session is reopened soon, and the other replicas also poll.
      .catch(() => undefined);
  }

  #renew(): void {
    if (this.#stopped) return;
    const session = this.#session;
    if (session === undefined || session.broken) {
      this.#open().catch(() => undefined);
      return;
    }
    const now = performance.now();
    if (now - this.#renewalStartedAt < RENEW_MS) return;
    this.#renewalStartedAt = now;
    const answered = () => {
      if (session === this.#session) this.#renewedAt = now;
    };
    session.run('select true').then(answered, () => undefined);
  }

  /**
   * Whether the session is certainly still open on the server. A session is not marked as broken when the server stops
   * responding, so the time of the last renewal is checked too.
   */
  #isValid(session: PostgresSession): boolean {
    const isCurrent = session === this.#session && !session.broken;
    return isCurrent && performance.now() - this.#renewedAt < VALID_MS;
  }

  async #open(): Promise<PostgresSession> {
    if (this.#session?.broken === false) return this.#session;
    this.#opening ??= this.#join().finally(() => {
      this.#opening = undefined;
    });
    return await this.#opening;
  }

  async #join(): Promise<PostgresSession> {
    const session = await PostgresSession.open(
      this.#settings,
      `set idle_session_timeout to ${IDLE_TIMEOUT_MS}; listen ${this.#channel}`,
    );
    session.onNotification((payload) => this.#onNotification(payload));
    const startedAt = performance.now();
    try {
      await session.run(`select pg_advisory_lock(${lockOf(`replica ${this.id}`)})`);
    } catch (error) {
      // The lock may still be held by the previous session, which the server has not ended yet. Closes the new session,
      // because the next attempt opens another one.
      await session.close();
      throw error;
    }
    this.#renewalStartedAt = startedAt;
    this.#renewedAt = startedAt;
    this.#session = session;
    if (this.#stopped) await session.close();
    return session;
  }

  #onNotification(payload: string): void {
    const [sender, name = ''] = payload.split(' ', 2);
    if (sender === this.id) return;
    for (const listener of [...(this.#listeners.get(name) ?? [])]) listener();
  }
}

/**
 * Returns the hash of a topic, because every user of the database can listen to notifications and must not see ids of
 * tenants and runs.
 */
function nameOf(topic: string): string {
  return createHash('sha256').update(topic).digest('base64url').slice(0, 22);
}

/** Thrown when another process holds the claim. */
class ClaimedByOther extends Error {}

function lockOf(name: string): string {
  return `hashtextextended('writ ${name.replaceAll("'", "''")} ' || current_schema(), 0)`;
}
