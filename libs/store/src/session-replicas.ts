import { createHash } from 'node:crypto';
import { newId } from '@writ/kernel';
import { PostgresSession, type SessionSettings } from './postgres-session.ts';
import type { Claim, Replicas } from './replicas.ts';

/** The server ends a session, and all that it holds, after so much silence: that of a process that was stopped. */
const SILENCE_MS = 15_000;
const RENEW_MS = 4_000;
/** Between two looks whether the session is still there. */
const LOOK_MS = 500;
/** A process whose connection broke, or whose server was started again, has so long to come back. */
const GRACE_MS = 3_000;

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
  /** Since when each of the others was not to be seen. */
  readonly #absent = new Map<string, number>();
  readonly #claimed = new Set<string>();
  readonly #hints = new Set<string>();
  #session: PostgresSession | undefined;
  #opening: Promise<PostgresSession> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #heard = 0;
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

  isSeen(): boolean {
    return this.#session?.broken === false;
  }

  async gone(ids: Iterable<string>): Promise<ReadonlySet<string>> {
    const gone = new Set<string>();
    const session = await this.#open();
    for (const id of new Set(ids)) {
      if (id === this.id) continue;
      // Shared, so that those who look do not see each other; let go with the statement.
      const { text } = await session.run(
        `select pg_try_advisory_xact_lock_shared(${lockOf(`replica ${id}`)})`,
      );
      const now = performance.now();
      if (text !== 't') {
        this.#absent.delete(id);
        continue;
      }
      const since = this.#absent.get(id) ?? now;
      this.#absent.set(id, since);
      if (now - since >= GRACE_MS) gone.add(id);
    }
    return gone;
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
      isHeld: () => held && !session.broken,
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
    if (performance.now() - this.#heard < RENEW_MS) return;
    this.#heard = performance.now();
    session.run('select true').catch(() => undefined);
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
    await session.run(`select pg_advisory_lock(${lockOf(`replica ${this.id}`)})`);
    this.#heard = performance.now();
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
