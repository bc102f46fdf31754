import { OverloadedError } from '@writ/kernel';
import type { PostgresSession } from './postgres-session.ts';

/**
 * Maximum number of statements in flight on one session. The server executes them one after the other, so more of them
 * would only make the statements behind a slow one wait on its session instead of running on the next free one.
 */
const MAX_PIPELINED = 8;

/** Options of {@link PostgresReaders}. */
export interface PostgresReadersOptions {
  readonly label: string;
  readonly connect: () => Promise<PostgresSession>;
  /** Maximum number of sessions. */
  readonly sessions: number;
  /** Maximum number of reads that wait for a session. */
  readonly maxQueued: number;
}

/** One session for reads, opened on demand. */
interface ReadSlot {
  session: PostgresSession | undefined;
  opening: Promise<PostgresSession> | undefined;
  /** Number of reads that use or open the session. */
  load: number;
}

/** A pool of read-only sessions, opened on demand and shared. Reads that wait for a session run in order of arrival. */
export class PostgresReaders {
  readonly #options: PostgresReadersOptions;
  readonly #slots: readonly ReadSlot[];
  readonly #waiting: PromiseWithResolvers<ReadSlot>[] = [];
  readonly #reading = new Set<Promise<unknown>>();

  constructor(options: PostgresReadersOptions) {
    this.#options = options;
    this.#slots = Array.from({ length: options.sessions }, () => ({
      session: undefined,
      opening: undefined,
      load: 0,
    }));
  }

  /**
   * Calls `use`, which runs one statement, with the least loaded session; a session that several callers share executes
   * their statements in order.
   * @throws OverloadedError STORE_QUEUE_FULL; UnavailableError STORE_UNREACHABLE
   */
  async borrow<T>(use: (session: PostgresSession) => Promise<T>): Promise<T> {
    const reading = this.#run(use);
    this.#reading.add(reading);
    try {
      return await reading;
    } finally {
      this.#reading.delete(reading);
    }
  }

  /** Waits for current reads and closes all sessions. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#reading);
    await Promise.all(this.#slots.map(({ session }) => session?.close()));
  }

  async #run<T>(use: (session: PostgresSession) => Promise<T>): Promise<T> {
    const slot = await this.#acquire();
    try {
      return await use(await this.#sessionIn(slot));
    } finally {
      this.#release(slot);
    }
  }

  async #acquire(): Promise<ReadSlot> {
    const least = Math.min(...this.#slots.map(({ load }) => load));
    const slot = this.#slots.find(({ load }) => load === least);
    if (slot !== undefined && least < MAX_PIPELINED) {
      slot.load += 1;
      return slot;
    }
    const { label, maxQueued } = this.#options;
    if (this.#waiting.length >= maxQueued) {
      throw new OverloadedError(
        'STORE_QUEUE_FULL',
        `The read queue of ${label} is full (maxQueued: ${maxQueued}); retry later.`,
        { limit: String(maxQueued) },
      );
    }
    const turn = Promise.withResolvers<ReadSlot>();
    this.#waiting.push(turn);
    return await turn.promise;
  }

  /** Gives the place of a read to the first waiting read. */
  #release(slot: ReadSlot): void {
    const next = this.#waiting.shift();
    if (next === undefined) slot.load -= 1;
    else next.resolve(slot);
  }

  async #sessionIn(slot: ReadSlot): Promise<PostgresSession> {
    if (slot.session?.broken === false) return slot.session;
    slot.opening ??= this.#open(slot);
    return await slot.opening;
  }

  async #open(slot: ReadSlot): Promise<PostgresSession> {
    try {
      slot.session = await this.#options.connect();
      return slot.session;
    } catch (error) {
      // If no session is open, the waiting reads would fail as well, each after another attempt to open a session.
      const isOpen = this.#slots.some(({ session }) => session?.broken === false);
      if (!isOpen) for (const { reject } of this.#waiting.splice(0)) reject(error);
      throw error;
    } finally {
      slot.opening = undefined;
    }
  }
}
