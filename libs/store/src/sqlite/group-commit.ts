import { setImmediate as nextTurnOfTheLoop } from 'node:timers/promises';
import { OverloadedError } from '@writ/kernel';
import type { CommitObserver } from '../commit-observer.ts';
import { CommitBatch } from './commit-batch.ts';
import type { SqliteConnection } from './sqlite-connection.ts';
import { Turn, type TurnKind } from './turn.ts';

/** Bounds of the one writer of a database. */
export interface GroupCommitLimits {
  /** Transactions that may wait; one more is refused. */
  readonly maxQueued: number;
  /** Transactions that may share one commit. */
  readonly maxBatch: number;
  /** Milliseconds after which a batch takes no further transaction. */
  readonly maxBatchMs: number;
}

/**
 * Lets everybody who wants to write take turns, first come, first served, and commits those who are
 * waiting together: a shared commit, never a shared answer.
 */
export class GroupCommit {
  readonly #connection: SqliteConnection;
  readonly #limits: GroupCommitLimits;
  readonly #observer: CommitObserver | undefined;
  readonly #waiting: Turn[] = [];
  #draining: Promise<void> | undefined;
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
   * Waits for a turn; whoever gets it must end it.
   * @throws OverloadedError STORE_QUEUE_FULL
   */
  enter(kind: TurnKind): Promise<Turn> {
    const { label } = this.#connection;
    const limit = this.#limits.maxQueued;
    if (this.#waiting.length >= limit) {
      return Promise.reject(
        new OverloadedError(
          'STORE_QUEUE_FULL',
          `More than ${limit} transactions wait for ${label}; the limit is maxQueued.`,
          { limit: String(limit) },
        ),
      );
    }
    const turn = new Turn(kind, this.#observer?.caller());
    this.#waiting.push(turn);
    this.#draining ??= this.#drain();
    return turn.started;
  }

  /** Resolves when everybody who waited has been served. */
  async drained(): Promise<void> {
    await this.#draining;
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      await this.#gather();
      const hasRelaxedDurability = this.#waiting.every(({ kind }) => kind === 'relaxed');
      const batch = new CommitBatch(this.#connection, { hasRelaxedDurability });
      const startedAt = Date.now();
      await this.#fill(batch);
      const kind = batch.commit();
      if (kind === 'foreground') this.#commits += 1;
      if (kind === 'background') this.#backgroundCommits += 1;
      if (kind !== 'empty') this.#observer?.committed({ callers: batch.callers, startedAt });
    }
    this.#draining = undefined;
  }

  /**
   * What arrives in the same turn of the event loop shares the commit, and so does what keeps arriving:
   * a commit costs more than the turn that finds another to share it. I/O is not starved meanwhile.
   */
  async #gather(): Promise<void> {
    let found: number;
    do {
      found = this.#waiting.length;
      await nextTurnOfTheLoop();
    } while (this.#waiting.length > found && this.#waiting.length < this.#limits.maxBatch);
  }

  async #fill(batch: CommitBatch): Promise<void> {
    const started = performance.now();
    const { maxBatch, maxBatchMs } = this.#limits;
    for (let size = 0; size < maxBatch; size += 1) {
      const [next] = this.#waiting;
      if (next === undefined || batch.lost || performance.now() - started > maxBatchMs) return;
      // What came since must last, and gets a commit that does.
      if (batch.hasRelaxedDurability && next.kind !== 'relaxed') return;
      // A read outside of transactions must not see what is not yet committed.
      if (next.kind === 'read' && size > 0) return;
      this.#waiting.shift();
      await next.run(batch);
      if (next.kind === 'read') return;
    }
  }
}
