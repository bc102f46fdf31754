import type { Clock } from '@writ/kernel';
import { COMMIT_DELAY_MS, type Store, type TransactionOptions } from '../store.ts';
import type { OutboxDatabase } from './outbox.ts';
import { markPublished } from './outbox-queries.ts';

type Position = number | bigint;

/**
 * Maximum number of unmarked messages before their marks are written, even if the interval has not passed. Also the
 * maximum number of marks in one statement, because the number of parameters of a statement is limited.
 */
const MAX_UNMARKED = 1_000;

/**
 * The messages that the bus has accepted and that are not yet marked in the outbox. Marks are written together in one
 * commit per interval: if a crash loses marks, the messages are only published again under the same event ids (HK-1,
 * CO-1).
 */
export class PublishedMarks {
  readonly #store: Store<OutboxDatabase>;
  readonly #clock: Clock;
  readonly #intervalMs: number;
  #positions: Position[] = [];
  #since = 0;
  #accepted = 0;

  constructor(store: Store<OutboxDatabase>, clock: Clock, intervalMs: number) {
    this.#store = store;
    this.#clock = clock;
    this.#intervalMs = intervalMs;
  }

  /** The positions of the unmarked messages, in the order in which the bus accepted them. */
  get positions(): readonly Position[] {
    return this.#positions;
  }

  /** Whether so many messages are unmarked that no further message may be published before their marks are written. */
  get isFull(): boolean {
    return this.#positions.length >= MAX_UNMARKED;
  }

  /** Milliseconds until the marks are due; undefined when there is nothing to mark. */
  get dueInMs(): number | undefined {
    if (this.#positions.length === 0) return undefined;
    return Math.max(0, this.#since + this.#intervalMs - performance.now());
  }

  /** Number of messages that the bus has accepted since this object was created. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Records that the bus has accepted the message at `position`. */
  add(position: Position): void {
    this.#accepted += 1;
    if (this.#positions.length === 0) this.#since = performance.now();
    this.#positions.push(position);
  }

  /**
   * Writes the marks at once if there are at least {@link MAX_UNMARKED}. Otherwise, if they are due, writes them with
   * the next transaction or, after {@link COMMIT_DELAY_MS}, alone; on PostgreSQL at once.
   */
  async writeDue(): Promise<void> {
    if (this.isFull) await this.write();
    else if (this.dueInMs === 0) await this.write({ commitDelayMs: COMMIT_DELAY_MS });
  }

  /** Writes the marks, at most {@link MAX_UNMARKED} in one transaction. */
  async write(options?: Pick<TransactionOptions, 'commitDelayMs'>): Promise<void> {
    while (this.#positions.length > 0) {
      const chunk = this.#positions.slice(0, MAX_UNMARKED);
      await markPublished(this.#store, chunk, this.#clock.now(), options);
      this.#positions = this.#positions.slice(chunk.length);
    }
  }
}
