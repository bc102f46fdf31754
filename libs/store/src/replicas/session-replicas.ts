import { createHash } from 'node:crypto';
import { newId } from '@writ/kernel';
import { PostgresSession, type SessionSettings } from '../postgres/postgres-session.ts';
import type { Claim, Replicas } from './replicas.ts';

/** The server ends a session, and all that it holds, after so much silence: that of a process that was stopped. */
const SILENCE_MS = 15_000;
/** It is certain to be there for so long after it has answered, whatever the network does. */
const CERTAIN_MS = 10_000;
const RENEW_MS = 4_000;
/** Between two looks whether the session is still there. */
const LOOK_MS = 500;
/** A process whose connection broke, or whose server was started again, has so long to come back. */
const GRACE_MS = 3_000;
/** Whoever was not looked for this long may have been back meanwhile. */
const UNWATCHED_MS = 10_000;

/** That a process was not to be seen, at each look from the first to the last. */
interface Absence {
  readonly since: number;
  readonly seenAt: number;
}

/**
 * Replicas on one PostgreSQL schema. Each holds locks in a session of its own, which go with the
 * process: at once when it dies, after `SILENCE_MS` when it is stopped or cut off.
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
  #asked = 0;
  /** When that was asked which the session answered last. */
  #heard = Number.NEGATIVE_INFINITY;
  #stopped = false;

  constructor(settings: SessionSettings) {
    this.#settings = settings;
    this.#channel = `writ_${createHash('sha256').update(settings.schema).digest('hex').slice(0, 24)}`;
  }

  async start(): Promise<void> {
    await this.#open();
    this.#timer = setInterval(() => this.#renew(), LOOK_MS);
    this.#timer.unref();
  }

  isVisible(): boolean {
    return this.#session !== undefined && this.#isCertain(this.#session);
  }

  async findDead(ids: Iterable<string>): Promise<ReadonlySet<string>> {
    const gone = new Set<string>();
    const session = await this.#open();
    for (const id of new Set(ids)) {
      if (id === this.id) continue;
      // Shared, so that those who look do not see each other; let go with the statement.
      const { text } = await session.run(
        `select pg_try_advisory_xact_lock_shared(${lockOf(`replica ${id}`)})`,
      );
      if (text !== 't') this.#absent.delete(id);
      else if (this.#absentMs(id) >= GRACE_MS) gone.add(id);
    }
    return gone;
  }

  /** Notes that a process is not to be seen; for how long that has been so at every look. */
  #absentMs(id: string): number {
    const now = performance.now();
    for (const [other, { seenAt }] of this.#absent) {
      if (now - seenAt >= UNWATCHED_MS) this.#absent.delete(other);
    }
    const since = this.#absent.get(id)?.since ?? now;
    this.#absent.set(id, { since, seenAt: now });
    return now - since;
  }

  async claim(name: string): Promise<Claim | undefined> {
    // A session may hold the same lock twice.
    if (this.#claimed.has(name)) return undefined;
    this.#claimed.add(name);
    let session: PostgresSession;
    try {
      session = await this.#open();
      const { text } = await session.run(`select pg_try_advisory_lock(${lockOf(`claim ${name}`)})`);
      if (text !== 't') throw new Taken();
    } catch (error) {
      this.#claimed.delete(name);
      if (error instanceof Taken) return undefined;
      throw error;
    }
    let held = true;
    return {
      isHeld: () => held && this.#isCertain(session),
      release: async () => {
        if (!held) return;
        held = false;
        this.#claimed.delete(name);
        if (session.broken) return;
        // A session that breaks now lets go, too.
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
    const names = [...this.#hints];
    this.#hints.clear();
    const session = this.#session;
    if (session === undefined || session.broken || this.#stopped) return;
    for (const name of names) {
      session
        .query('select pg_notify($1, $2)', [this.#channel, `${this.id} ${name}`])
        // The session is opened again in a moment, and the others look by themselves.
        .catch(() => undefined);
    }
  }

  #renew(): void {
    if (this.#stopped) return;
    const session = this.#session;
    if (session === undefined || session.broken) {
      this.#open().catch(() => undefined);
      return;
    }
    const now = performance.now();
    if (now - this.#asked < RENEW_MS) return;
    this.#asked = now;
    const answered = () => {
      if (session === this.#session) this.#heard = now;
    };
    session.run('select true').then(answered, () => undefined);
  }

  /** Whether the server cannot have ended a session: one that nobody answers on is not broken yet. */
  #isCertain(session: PostgresSession): boolean {
    const isCurrent = session === this.#session && !session.broken;
    return isCurrent && performance.now() - this.#heard < CERTAIN_MS;
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
      `set idle_session_timeout to ${SILENCE_MS}; listen ${this.#channel}`,
    );
    session.onNotification((payload) => this.#hear(payload));
    const asked = performance.now();
    try {
      await session.run(`select pg_advisory_lock(${lockOf(`replica ${this.id}`)})`);
    } catch (error) {
      // The server may not have noticed yet that the session before is gone; each try makes another.
      await session.close();
      throw error;
    }
    this.#asked = asked;
    this.#heard = asked;
    this.#session = session;
    if (this.#stopped) await session.close();
    return session;
  }

  #hear(payload: string): void {
    const [sender, name = ''] = payload.split(' ', 2);
    if (sender === this.id) return;
    for (const listener of [...(this.#listeners.get(name) ?? [])]) listener();
  }
}

/** Everybody in the database may listen, so that ids of tenants and runs are not told. */
function nameOf(topic: string): string {
  return createHash('sha256').update(topic).digest('base64url').slice(0, 22);
}

/** Somebody else has it. */
class Taken extends Error {}

function lockOf(what: string): string {
  return `hashtextextended('writ ${what.replaceAll("'", "''")} ' || current_schema(), 0)`;
}
