import { setImmediate as nextEventLoopTurn } from 'node:timers/promises';
import { OverloadedError } from '@writ/kernel';
import type { CommitObserver } from '../commit-observer.ts';
import type { GroupCommitLimits } from '../sqlite/group-commit.ts';
import type { TransactionOptions } from '../store.ts';
import { PostgresBatch, type Reconnect } from './postgres-batch.ts';
import type { PostgresSession } from './postgres-session.ts';
import { PostgresTurn } from './postgres-turn.ts';

/**
 * Runs the write transactions of this process on one session in order of arrival, urgent ones first, and commits waiting ones together.
 * The write lock serializes the processes.
 */
export class PostgresWriter {
  readonly #label: string;
  readonly #connect: Reconnect;
  readonly #limits: GroupCommitLimits;
  readonly #observer: CommitObserver | undefined;
  readonly #waiting: PostgresTurn[] = [];
  #session: PostgresSession | undefined;
  #draining: Promise<void> | undefined;
  #reachable = true;
  #commits = 0;
  #backgroundCommits = 0;

  constructor(
    label: string,
    connect: Reconnect,
    limits: GroupCommitLimits,
    observer?: CommitObserver,
  ) {
    this.#label = label;
    this.#connect = connect;
    this.#limits = limits;
    this.#observer = observer;
  }

  /** Whether the last attempt to open its session succeeded. */
  get reachable(): boolean {
    return this.#reachable;
  }

  get commits(): number {
    return this.#commits;
  }

  get backgroundCommits(): number {
    return this.#backgroundCommits;
  }

  /**
   * Waits for a turn, which the caller must finish or leave.
   * @throws OverloadedError STORE_QUEUE_FULL; UnavailableError STORE_BUSY, STORE_UNREACHABLE
   */
  async enter(options: TransactionOptions): Promise<PostgresTurn> {
    const limit = this.#limits.maxQueued;
    if (this.#waiting.length >= limit && options.urgent !== true) {
      throw new OverloadedError(
        'STORE_QUEUE_FULL',
        `More than ${limit} transactions are waiting for ${this.#label}; the limit is maxQueued.`,
        { limit: String(limit) },
      );
    }
    const turn = new PostgresTurn(options, this.#observer?.caller());
    if (turn.urgent) {
      const after = this.#waiting.findLastIndex((waiting) => waiting.urgent);
      this.#waiting.splice(after + 1, 0, turn);
    } else this.#waiting.push(turn);
    this.#draining ??= this.#drain();
    return await turn.started;
  }

  /** Resolves when no transaction is waiting. */
  async drained(): Promise<void> {
    await this.#draining;
  }

  /** Closes the session; no transaction may be waiting. */
  async close(): Promise<void> {
    await this.#session?.close();
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Transactions that arrive in the same turn of the event loop share the commit.
      await nextEventLoopTurn();
      try {
        await this.#serveBatch();
      } catch (error) {
        // The others would fail as well after the same wait.
        for (const turn of this.#waiting.splice(0)) turn.refuse(error);
      }
    }
    this.#draining = undefined;
  }

  async #serveBatch(): Promise<void> {
    if (this.#session === undefined || this.#session.broken) {
      this.#reachable = false;
      this.#session = await this.#connect();
      this.#reachable = true;
    }
    const startedAt = Date.now();
    const batch = await PostgresBatch.begin(this.#session, this.#connect);
    const started = performance.now();
    const { maxBatch, maxBatchMs } = this.#limits;
    try {
      for (let size = 0; size < maxBatch; size += 1) {
        const [next] = this.#waiting;
        if (next === undefined || batch.over || performance.now() - started > maxBatchMs) break;
        this.#waiting.shift();
        await batch.serve(next);
      }
    } finally {
      const kind = await batch.commit();
      if (kind === 'foreground') this.#commits += 1;
      if (kind === 'background') this.#backgroundCommits += 1;
      if (kind !== 'empty') this.#observer?.committed({ callers: batch.callers, startedAt });
    }
  }
}
