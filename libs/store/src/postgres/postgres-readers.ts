import type { PostgresSession } from './postgres-session.ts';

/** A pool of read-only sessions, opened on demand and shared. */
export class PostgresReaders {
  readonly #open: () => Promise<PostgresSession>;
  readonly #slots: (Promise<PostgresSession> | undefined)[];
  readonly #load: number[];
  readonly #reading = new Set<Promise<unknown>>();

  /** @param count maximum number of sessions */
  constructor(open: () => Promise<PostgresSession>, count: number) {
    this.#open = open;
    this.#slots = Array.from({ length: count }, () => undefined);
    this.#load = Array.from({ length: count }, () => 0);
  }

  /**
   * Runs `use` on the least loaded session; a session that several callers share executes their statements in order.
   */
  async borrow<T>(use: (session: PostgresSession) => Promise<T>): Promise<T> {
    const slot = this.#load.indexOf(Math.min(...this.#load));
    this.#load[slot] = (this.#load[slot] ?? 0) + 1;
    const reading = this.#sessionIn(slot).then(use);
    this.#reading.add(reading);
    try {
      return await reading;
    } finally {
      this.#reading.delete(reading);
      this.#load[slot] = (this.#load[slot] ?? 1) - 1;
    }
  }

  /** Waits for current reads and closes all sessions. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#reading);
    const ended = this.#slots.splice(0).map(async (opening) => (await opening)?.close());
    await Promise.allSettled(ended);
  }

  async #sessionIn(slot: number): Promise<PostgresSession> {
    const known = this.#slots[slot];
    if (known !== undefined) {
      const session = await known.catch(() => undefined);
      if (session !== undefined && !session.broken) return session;
      // A concurrent caller may already have replaced the broken session.
      if (this.#slots[slot] !== known) return await this.#sessionIn(slot);
    }
    const opening = this.#open();
    this.#slots[slot] = opening;
    return await opening;
  }
}
