import type { Kysely } from 'kysely';
import { PostgresSession, type SessionSettings } from '../postgres/postgres-session.ts';

/** The leadership of one task among the processes that share a store. */
export interface Leadership {
  /** Acquires or renews the leadership; false while another process has it. */
  acquire(): Promise<boolean>;
  /** Whether the leadership is valid, without a query. */
  isValid(): boolean;
  /** Releases the leadership. */
  release(): Promise<void>;
}

/** Idle timeout after which the server ends the session and thereby the leadership, ms. */
const IDLE_TIMEOUT_MS = 15_000;
const VALID_MS = 10_000;
const RENEW_MS = 4_000;

const SINGLE_PROCESS: Leadership = {
  acquire: async () => true,
  isValid: () => true,
  release: async () => undefined,
};

const shared = new WeakMap<object, SessionSettings>();

/** Enables leader election among the processes that share `db`. */
export function enableLeadership<DB>(db: Kysely<DB>, settings: SessionSettings): void {
  shared.set(db, settings);
}

/** Returns the settings for opening additional sessions on the store of `db`; undefined for a single-process store. */
export function settingsOf<DB>(db: Kysely<DB>): SessionSettings | undefined {
  return shared.get(db);
}

/** The leadership `name` among the processes that share the store of `db`; always granted to a single process. */
export function leadershipOf<DB>(db: Kysely<DB>, name: string): Leadership {
  const settings = settingsOf(db);
  return settings === undefined ? SINGLE_PROCESS : new SessionLeadership(settings, name);
}

/**
 * Leadership by a session-level advisory lock. A dead process loses the lock at once; a paused or disconnected process
 * loses it after `IDLE_TIMEOUT_MS`, when its `isValid` already returns false.
 */
class SessionLeadership implements Leadership {
  readonly #settings: SessionSettings;
  readonly #lock: string;
  #session: PostgresSession | undefined;
  #isHeld = false;
  #renewedAt = Number.NEGATIVE_INFINITY;

  constructor(settings: SessionSettings, name: string) {
    this.#settings = settings;
    this.#lock = `select pg_try_advisory_lock(hashtextextended('writ ${name} ' || current_schema(), 0))`;
  }

  async acquire(): Promise<boolean> {
    if (this.#session?.broken !== false) {
      this.#isHeld = false;
      this.#session = await PostgresSession.open(
        this.#settings,
        `set idle_session_timeout to ${IDLE_TIMEOUT_MS}`,
      );
    }
    const startedAt = performance.now();
    if (this.#isHeld && startedAt - this.#renewedAt < RENEW_MS) return true;
    const { text } = await this.#session.run(this.#isHeld ? 'select true' : this.#lock);
    this.#isHeld = text === 'true' || text === 't';
    this.#renewedAt = startedAt;
    return this.#isHeld;
  }

  isValid(): boolean {
    return (
      this.#isHeld &&
      this.#session?.broken === false &&
      performance.now() - this.#renewedAt < VALID_MS
    );
  }

  async release(): Promise<void> {
    this.#isHeld = false;
    await this.#session?.close();
  }
}
