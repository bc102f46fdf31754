import { InternalError, UnavailableError } from '@writ/kernel';
import { isDiskFull } from '../disk-full.ts';
import type { SqliteConnection } from './sqlite-connection.ts';

/** The state of one transaction of a batch. Queries are allowed while it is `open`. */
export type WorkState = 'new' | 'open' | 'finished' | 'rolled back';

/** One caller's transaction within a batch. */
export interface BatchWork {
  readonly caller: unknown;
  readonly background: boolean;
  state: WorkState;
  /** Whether the transaction runs in a savepoint; false for the first transaction of a batch, which needs none. */
  savepoint: boolean;
  writesBefore: number;
}

/** What a commit contains: nothing, only background work, or work that a request waits for. */
export type CommitKind = 'empty' | 'background' | 'foreground';

interface FinishedWork {
  readonly caller: unknown;
  readonly background: boolean;
  readonly wrote: boolean;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Runs several transactions one after the other with one shared commit. A failed transaction is rolled back alone.
 * Finished transactions resolve after the shared commit, which is durable unless all of them are `relaxed`.
 */
export class CommitBatch {
  /** Whether the commit skips fsync, so that a power failure may lose it. */
  readonly hasRelaxedDurability: boolean;
  readonly #connection: SqliteConnection;
  #finished: FinishedWork[] = [];
  #callers: readonly unknown[] = [];
  #open = false;
  #lost = false;

  constructor(
    connection: SqliteConnection,
    { hasRelaxedDurability }: { readonly hasRelaxedDurability: boolean },
  ) {
    this.hasRelaxedDurability = hasRelaxedDurability;
    this.#connection = connection;
  }

  /** The callers of the transactions that wrote; set by the commit. */
  get callers(): readonly unknown[] {
    return this.#callers;
  }

  /** Whether the shared transaction was rolled back as a whole, so that no further transaction can join. */
  get lost(): boolean {
    return this.#lost;
  }

  /**
   * Opens the shared transaction, or a savepoint in it.
   * @throws UnavailableError STORE_BUSY if another process holds the write lock
   */
  begin(work: BatchWork): void {
    const connection = this.#connection;
    if (this.#open) {
      connection.run('SAVEPOINT work');
      work.savepoint = true;
    } else {
      if (connection.inTransaction) connection.run('ROLLBACK');
      connection.run('BEGIN IMMEDIATE');
      connection.detectOtherWriters();
      this.#open = true;
    }
    work.writesBefore = connection.writes;
    work.state = 'open';
  }

  /** Ends successful work; resolves after the shared commit. */
  async finish(work: BatchWork): Promise<void> {
    work.state = 'finished';
    if (!this.#connection.inTransaction) {
      const error = transactionLost();
      this.#lose(error);
      throw error;
    }
    const { background, caller } = work;
    const wrote = this.#connection.writes !== work.writesBefore;
    if (work.savepoint) this.#release();
    await new Promise<void>((resolve, reject) => {
      this.#finished.push({ caller, background, wrote, resolve, reject });
    });
  }

  /** Rolls back failed work alone. */
  rollBack(work: BatchWork): void {
    if (work.state !== 'open') return;
    work.state = 'rolled back';
    const connection = this.#connection;
    // A transaction that only read has not cached any row that is rolled back.
    if (connection.writes !== work.writesBefore) connection.cacheGeneration.invalidate();
    try {
      if (!connection.inTransaction) {
        // Some failures (a full disk, ON CONFLICT ROLLBACK) roll back the whole shared transaction, not only the
        // savepoint.
        this.#lose(transactionLost());
      } else if (work.savepoint) {
        connection.run('ROLLBACK TO work');
        connection.run('RELEASE work');
      } else {
        connection.run('ROLLBACK');
        this.#open = false;
      }
    } catch (error) {
      this.#lose(error);
      throw error;
    }
  }

  /** Commits all finished work or none of it. Makes it durable unless all of it is `relaxed`. */
  async commit(): Promise<CommitKind> {
    if (!this.#open) return 'empty';
    try {
      this.#connection.run('COMMIT');
    } catch (error) {
      this.#lose(error);
      return 'empty';
    }
    this.#open = false;
    const finished = this.#takeFinished();
    const writers = finished.filter(({ wrote }) => wrote);
    try {
      if (writers.length > 0 && !this.hasRelaxedDurability) await this.#connection.sync();
    } catch (error) {
      for (const { reject } of finished) reject(error);
      return 'empty';
    }
    for (const { resolve } of finished) resolve();
    if (writers.length === 0) return 'empty';
    this.#callers = writers.map(({ caller }) => caller);
    return writers.every(({ background }) => background) ? 'background' : 'foreground';
  }

  #lose(cause: unknown): void {
    this.#lost = true;
    this.#open = false;
    this.#connection.cacheGeneration.invalidate();
    for (const { reject } of this.#takeFinished()) {
      reject(
        isDiskFull(cause)
          ? cause
          : new UnavailableError(
              'STORE_COMMIT_FAILED',
              'The commit failed; the transaction was rolled back.',
              {},
              { cause },
            ),
      );
    }
    try {
      if (this.#connection.inTransaction) this.#connection.run('ROLLBACK');
    } catch {
      // The callers have already received an error; the next `begin` retries the rollback and reports its error.
      this.#lost = true;
    }
  }

  #release(): void {
    try {
      this.#connection.run('RELEASE work');
    } catch (error) {
      this.#lose(error);
      throw error;
    }
  }

  #takeFinished(): FinishedWork[] {
    const finished = this.#finished;
    this.#finished = [];
    return finished;
  }
}

/** Returns the error for transactions that were rolled back because a statement ended the shared transaction. */
export function transactionLost(): InternalError {
  return new InternalError(
    'STORE_TRANSACTION_LOST',
    'A statement ended the transaction; it was rolled back.',
  );
}
