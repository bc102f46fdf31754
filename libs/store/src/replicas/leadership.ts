import type { Kysely } from 'kysely';
import { PostgresSession, type SessionSettings } from '../postgres/postgres-session.ts';

/** The right to do what only one of the processes on a store may do. */
export interface Lead {
  /** Takes it, or makes sure of it; false while another process has it. */
  take(): Promise<boolean>;
  /** Whether it is certain still, without asking anybody. */
  isCertain(): boolean;
  /** Gives it up. */
  release(): Promise<void>;
}

/** The server ends a session, and with it the lead, after so much silence. */
const SILENCE_MS = 15_000;
const CERTAIN_MS = 10_000;
const RENEW_MS = 4_000;

const ALONE: Lead = {
  take: async () => true,
  isCertain: () => true,
  release: async () => undefined,
};

const shared = new WeakMap<object, SessionSettings>();

/** Lets the processes that share `db` find out which of them leads. */
export function shareLeads<DB>(db: Kysely<DB>, settings: SessionSettings): void {
  shared.set(db, settings);
}

/** How to open further sessions on the store that `db` reads; undefined for a store of one process. */
export function settingsOf<DB>(db: Kysely<DB>): SessionSettings | undefined {
  return shared.get(db);
}

/** The lead called `name` among the processes on the store that `db` reads; a store of one process has no other. */
export function leadOf<DB>(db: Kysely<DB>, name: string): Lead {
  const settings = settingsOf(db);
  return settings === undefined ? ALONE : new SessionLead(settings, name);
}

/**
 * A lock held by a session: a process that died loses it at once, one that was stopped or cut off
 * after `SILENCE_MS`, which the server counts and which ends after this process is certain no more.
 */
class SessionLead implements Lead {
  readonly #settings: SessionSettings;
  readonly #lock: string;
  #session: PostgresSession | undefined;
  #holds = false;
  #heard = Number.NEGATIVE_INFINITY;

  constructor(settings: SessionSettings, name: string) {
    this.#settings = settings;
    this.#lock = `select pg_try_advisory_lock(hashtextextended('writ ${name} ' || current_schema(), 0))`;
  }

  async take(): Promise<boolean> {
    if (this.#session?.broken !== false) {
      this.#holds = false;
      this.#session = await PostgresSession.open(
        this.#settings,
        `set idle_session_timeout to ${SILENCE_MS}`,
      );
    }
    const asked = performance.now();
    if (this.#holds && asked - this.#heard < RENEW_MS) return true;
    const { text } = await this.#session.run(this.#holds ? 'select true' : this.#lock);
    this.#holds = text === 'true' || text === 't';
    this.#heard = asked;
    return this.#holds;
  }

  isCertain(): boolean {
    return (
      this.#holds && this.#session?.broken === false && performance.now() - this.#heard < CERTAIN_MS
    );
  }

  async release(): Promise<void> {
    this.#holds = false;
    await this.#session?.close();
  }
}
