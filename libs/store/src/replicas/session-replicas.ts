import { createHash } from 'node:crypto';
import { newId } from '@writ/kernel';
import { PostgresSession, type SessionSettings } from '../postgres/postgres-session.ts';
import type { Claim, Replicas } from './replicas.ts';

/** The server ends an idle session with its locks after this time, for example that of a paused process. */
const IDLE_TIMEOUT_MS = 15_000;
/** A session is valid for this time after the start of its last answered renewal, whatever the network does. */
const VALID_MS = 10_000;
const RENEW_MS = 4_000;
/**
 * One transaction for all notifications of a turn: each transaction that notifies wakes every listening session of the database,
 * which reads them in a transaction of its own.
 */
const NOTIFY = 'select pg_notify($1, payload) from json_array_elements_text($2::json) as payload';
/** Interval between two checks of the session. */
const CHECK_MS = 500;
/** A process may reconnect within this time after a broken connection or a server restart. */
export const GRACE_MS = 3_000;
/** An absence that was not observed for this time may have been interrupted. */
const FORGET_ABSENCE_MS = 10_000;

/** A process that was absent at every check from the first to the last. */
interface Absence {
  readonly since: number;
  readonly lastAt: number;
}

/**
 * Replicas on one PostgreSQL schema. Each holds locks in its own session, which are released with the process: at
 * once when it dies, after `IDLE_TIMEOUT_MS` when it is paused or disconnected.
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
  /** Start of the last renewal that the session answered. */
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

  /** Records that a process is absent; returns for how long it was absent at every check. */
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
    // A session can acquire the same lock twice.
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
        // A session that breaks now releases the lock as well.
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
      // The session is reopened soon, and the others poll.
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

  /** Whether the server cannot have ended the session: an unresponsive one is not broken yet. */
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
      // The server may not have ended the previous session yet; each attempt opens another.
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

/** Hashed, because every user of the database can listen and must not see ids of tenants and runs. */
function nameOf(topic: string): string {
  return createHash('sha256').update(topic).digest('base64url').slice(0, 22);
}

/** Another process holds the claim. */
class ClaimedByOther extends Error {}

function lockOf(name: string): string {
  return `hashtextextended('writ ${name.replaceAll("'", "''")} ' || current_schema(), 0)`;
}
