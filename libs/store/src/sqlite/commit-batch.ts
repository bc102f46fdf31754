import { InternalError, UnavailableError } from '@writ/kernel';
import type { SqliteConnection } from './sqlite-connection.ts';

/** Where one transaction of a batch stands. Queries are allowed while it is `open`. */
export type WorkState = 'new' | 'open' | 'finished' | 'undone';

/** One caller's transaction within a batch. */
export interface BatchWork {
  readonly caller: unknown;
  readonly background: boolean;
  state: WorkState;
  /** Absent for the first work of a commit, which the transaction itself bounds. */
  savepoint: boolean;
  writesBefore: number;
}

/** What a commit made durable: nothing, only background work, or what a request waits for. */
export type CommitKind = 'empty' | 'background' | 'foreground';

interface Finisher {
  readonly caller: unknown;
  readonly background: boolean;
  readonly wrote: boolean;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Several transactions, one after the other, each undone alone when it fails, under one commit.
 * A work that finished is answered only when that commit is durable.
 */
export class CommitBatch {
  /** Whether a loss of power may undo all of it, so that its commit need not wait for the disk. */
  readonly hasRelaxedDurability: boolean;
  readonly #connection: SqliteConnection;
  #finished: Finisher[] = [];
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

  /** Of those who wrote, once it is committed. */
  get callers(): readonly unknown[] {
    return this.#callers;
  }

  /** Whether the shared transaction is gone, so that nothing more may join this batch. */
  get lost(): boolean {
    return this.#lost;
  }

  /**
   * Opens the shared transaction, or a savepoint in it.
   * @throws UnavailableError STORE_BUSY when another process writes
   */
  begin(work: BatchWork): void {
    const connection = this.#connection;
    if (this.#open) {
      connection.run('SAVEPOINT work');
      work.savepoint = true;
    } else {
      if (connection.inTransaction) connection.run('ROLLBACK');
      connection.waitForDisk(!this.hasRelaxedDurability);
      connection.run('BEGIN IMMEDIATE');
      connection.noticeOthers();
      this.#open = true;
    }
    work.writesBefore = connection.writes;
    work.state = 'open';
  }

  /** Ends a work that succeeded; resolves once the shared commit is durable, rejects when it is not. */
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

  /** Ends a work that failed: its own changes go, those of the others stay. */
  undo(work: BatchWork): void {
    if (work.state !== 'open') return;
    work.state = 'undone';
    const connection = this.#connection;
    // A work that only read has remembered nothing that is undone with it.
    if (connection.writes !== work.writesBefore) connection.memory.forget();
    try {
      if (!connection.inTransaction) {
        // Some failures (a full disk, ON CONFLICT ROLLBACK) undo more than their own savepoint.
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

  /** Makes durable what finished and answers its callers: all of them, or none. */
  commit(): CommitKind {
    if (!this.#open) return 'empty';
    try {
      this.#connection.run('COMMIT');
    } catch (error) {
      this.#lose(error);
      return 'empty';
    }
    this.#open = false;
    const finished = this.#takeFinished();
    for (const { resolve } of finished) resolve();
    const writers = finished.filter(({ wrote }) => wrote);
    if (writers.length === 0) return 'empty';
    this.#callers = writers.map(({ caller }) => caller);
    return writers.every(({ background }) => background) ? 'background' : 'foreground';
  }

  #lose(cause: unknown): void {
    this.#lost = true;
    this.#open = false;
    this.#connection.memory.forget();
    for (const { reject } of this.#takeFinished()) {
      reject(
        new UnavailableError(
          'STORE_COMMIT_FAILED',
          'The commit of this transaction failed; nothing of it is stored.',
          {},
          { cause },
        ),
      );
    }
    try {
      if (this.#connection.inTransaction) this.#connection.run('ROLLBACK');
    } catch {
      // The answer is given already; the next begin tries again, and tells its caller.
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

  #takeFinished(): Finisher[] {
    const finished = this.#finished;
    this.#finished = [];
    return finished;
  }
}

/** What a transaction is told that one of its own statements has ended. */
export function transactionLost(): InternalError {
  return new InternalError(
    'STORE_TRANSACTION_LOST',
    'A statement of this transaction ended it; nothing of it is stored.',
  );
}
