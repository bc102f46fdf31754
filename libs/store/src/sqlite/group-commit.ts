import { setImmediate as nextEventLoopTurn } from 'node:timers/promises';
import { OverloadedError } from '@writ/kernel';
import type { CommitObserver } from '../commit-observer.ts';
import { CommitBatch } from './commit-batch.ts';
import type { SqliteConnection } from './sqlite-connection.ts';
import { Turn, type TurnKind } from './turn.ts';

/** Limits of the writer of a database. */
export interface GroupCommitLimits {
  /**
   * Maximum number of waiting transactions; further transactions are rejected unless they are urgent. On PostgreSQL
   * also the maximum number of waiting reads.
   */
  readonly maxQueued: number;
  /** Maximum number of transactions in one commit. */
  readonly maxBatch: number;
  /** Time after which a batch accepts no further transaction, ms. */
  readonly maxBatchMs: number;
}

/**
 * Runs write transactions one after the other in order of arrival, urgent transactions first, and commits waiting
 * transactions together (group commit). Each transaction succeeds or fails independently of the others.
 */
export class GroupCommit {
  readonly #connection: SqliteConnection;
  readonly #limits: GroupCommitLimits;
  readonly #observer: CommitObserver | undefined;
  readonly #waiting: Turn[] = [];
  #draining: Promise<void> | undefined;
  #isCommitting = false;
  /** Reads that wait until the commit is durable. */
  readonly #reads: (() => void)[] = [];
  /** Runs the waiting transactions when the first commit delay ends. */
  #timer: NodeJS.Timeout | undefined;
  #isClosing = false;
  #commits = 0;
  #backgroundCommits = 0;

  constructor(connection: SqliteConnection, limits: GroupCommitLimits, observer?: CommitObserver) {
    this.#connection = connection;
    this.#limits = limits;
    this.#observer = observer;
  }

  get commits(): number {
    return this.#commits;
  }

  get backgroundCommits(): number {
    return this.#backgroundCommits;
  }

  /**
   * Queues a transaction and resolves with its turn when the turn begins; the caller must end the turn with `finish` or
   * `leave`.
   * @param commitDelayMs longest wait for another transaction with which to share the commit, ms
   * @throws OverloadedError STORE_QUEUE_FULL, unless the transaction is urgent
   */
  enter(kind: TurnKind, commitDelayMs = 0): Promise<Turn> {
    const { label } = this.#connection;
    const limit = this.#limits.maxQueued;
    if (this.#waiting.length >= limit && kind !== 'urgent') {
      return Promise.reject(
        new OverloadedError(
          'STORE_QUEUE_FULL',
          `The transaction queue of ${label} is full (maxQueued: ${limit}); retry later.`,
          { limit: String(limit) },
        ),
      );
    }
    const dueAt = commitDelayMs > 0 ? performance.now() + commitDelayMs : 0;
    const turn = new Turn(kind, this.#observer?.caller(), dueAt);
    if (kind === 'urgent') {
      const after = this.#waiting.findLastIndex((waiting) => waiting.kind === 'urgent');
      this.#waiting.splice(after + 1, 0, turn);
    } else this.#waiting.push(turn);
    this.#drainIfDue();
    return turn.started;
  }

  /** Runs `read` on committed data; waits for a commit in progress, so that the data is durable. */
  read<T>(read: () => T): T | Promise<T> {
    if (!this.#isCommitting) return read();
    return new Promise<void>((resolve) => this.#reads.push(resolve)).then(read);
  }

  /** Runs all waiting transactions without their commit delay; resolves when none is left. */
  async drained(): Promise<void> {
    this.#isClosing = true;
    this.#drainIfDue();
    await this.#draining;
  }

  /** Runs the waiting transactions if one of them is due; otherwise sets the timer for the first that becomes due. */
  #drainIfDue(): void {
    if (this.#draining !== undefined) return;
    clearTimeout(this.#timer);
    if (this.#isDue) this.#draining = this.#drain();
    else if (this.#waiting.length > 0) {
      const next = Math.min(...this.#waiting.map(({ dueAt }) => dueAt));
      const waitMs = Math.max(0, next - performance.now());
      this.#timer = setTimeout(() => this.#drainIfDue(), waitMs);
    }
  }

  /** Whether a waiting transaction is due, which means that all waiting transactions run now. */
  get #isDue(): boolean {
    const now = this.#isClosing ? Number.POSITIVE_INFINITY : performance.now();
    return this.#waiting.some(({ dueAt }) => dueAt <= now);
  }

  async #drain(): Promise<void> {
    while (this.#isDue) {
      await this.#gather();
      const hasRelaxedDurability = this.#waiting.every(({ kind }) => kind === 'relaxed');
      const batch = new CommitBatch(this.#connection, { hasRelaxedDurability });
      const startedAt = performance.now();
      await this.#fill(batch);
      this.#isCommitting = true;
      const kind = await batch.commit();
      this.#isCommitting = false;
      for (const read of this.#reads.splice(0)) read();
      if (kind === 'foreground') this.#commits += 1;
      if (kind === 'background') this.#backgroundCommits += 1;
      if (kind !== 'empty') this.#observer?.committed({ callers: batch.callers, startedAt });
    }
    this.#draining = undefined;
    this.#drainIfDue();
  }

  /**
   * Waits for transactions that arrive in the same turn of the event loop, and continues to wait as long as more arrive
   * in each turn, because a commit costs more than another turn. Does not starve I/O.
   */
  async #gather(): Promise<void> {
    let found: number;
    do {
      found = this.#waiting.length;
      await nextEventLoopTurn();
    } while (this.#waiting.length > found && this.#waiting.length < this.#limits.maxBatch);
  }

  async #fill(batch: CommitBatch): Promise<void> {
    const { maxBatch, maxBatchMs } = this.#limits;
    const started = performance.now();
    for (let size = 0; size < maxBatch; size += 1) {
      const [next] = this.#waiting;
      if (next === undefined || batch.lost || performance.now() - started > maxBatchMs) return;
      // A durable transaction needs a durable commit.
      if (batch.hasRelaxedDurability && next.kind !== 'relaxed') return;
      // A read outside of transactions must not see uncommitted data.
      if (next.kind === 'read' && size > 0) return;
      this.#waiting.shift();
      await next.run(batch);
      if (next.kind === 'read') return;
    }
  }
}
