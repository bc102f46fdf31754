import { InternalError } from '@writ/kernel';
import { isDiskFull } from '../disk-full.ts';
import type { CommitKind } from '../sqlite/commit-batch.ts';
import { beginTransaction } from './begin-transaction.ts';
import { commitFailed, outcomeOfLostCommit, type Reconnect } from './lost-commit.ts';
import type { PostgresSession } from './postgres-session.ts';
import type { PostgresTurn } from './postgres-turn.ts';
import type { LockSet } from './write-locks.ts';

/**
 * Runs several transactions one after the other with one shared commit, holding the locks of all of them. A failed
 * transaction is rolled back alone. Finished transactions resolve only when the shared commit is durable.
 */
export class PostgresCommitBatch {
  readonly #session: PostgresSession;
  readonly #reconnect: Reconnect;
  /** The id of the shared transaction, to look up its status after a lost COMMIT. */
  readonly #transaction: string;
  #finished: PostgresTurn[] = [];
  /** The first turn, until the server has responded to all of its statements. */
  #first: PostgresTurn | undefined;
  #callers: readonly unknown[] = [];
  #served = 0;
  #over = false;

  private constructor(session: PostgresSession, reconnect: Reconnect, transaction: string) {
    this.#session = session;
    this.#reconnect = reconnect;
    this.#transaction = transaction;
  }

  /**
   * Begins the shared transaction with its locks.
   * @throws UnavailableError STORE_BUSY, STORE_UNREACHABLE
   */
  static async begin(
    session: PostgresSession,
    reconnect: Reconnect,
    locks: LockSet,
  ): Promise<PostgresCommitBatch> {
    try {
      const { text } = await session.begin(beginTransaction(session, locks));
      return new PostgresCommitBatch(session, reconnect, text);
    } catch (error) {
      // Closes the session, because the error, such as a lock timeout, leaves its transaction open.
      await session.close();
      throw error;
    }
  }

  /** The callers of the transactions that wrote; set by the commit. */
  get callers(): readonly unknown[] {
    return this.#callers;
  }

  /** Whether no further turn may join. */
  get over(): boolean {
    return this.#over || this.#session.broken;
  }

  /** Runs one turn to its end; false if the batch is over and the turn has not begun. */
  async serve(turn: PostgresTurn): Promise<boolean> {
    if (!(await this.#firstAnswered())) return false;
    const savepoint = this.#served > 0;
    this.#served += 1;
    // Not awaited, because the session executes the queries of the turn after this statement. Shadows the previous
    // savepoint of the same name.
    const begun = savepoint ? this.#control('savepoint work') : Promise.resolve(true);
    const ending = await turn.serve(this.#session);
    if (ending === 'finished' && !savepoint) {
      // Does not wait for the responses here: if no other turn follows, COMMIT is sent directly after its last
      // statements.
      this.#finished.push(turn);
      this.#first = turn;
      return true;
    }
    const error = await turn.answered();
    if (!(await begun)) {
      turn.answer(commitFailed(undefined));
    } else if (ending === 'finished' && error === undefined) {
      this.#finished.push(turn);
    } else {
      if (ending === 'finished') turn.answer(error);
      await this.#undo(savepoint);
    }
    return true;
  }

  /**
   * Waits for the responses to the statements of the first turn. Returns false if a statement failed, which ends the
   * batch.
   */
  async #firstAnswered(): Promise<boolean> {
    const first = this.#first;
    this.#first = undefined;
    const error = await first?.answered();
    if (first === undefined || error === undefined) return true;
    this.#finished = [];
    first.answer(error);
    await this.#undo(false);
    return false;
  }

  async #undo(savepoint: boolean): Promise<void> {
    this.#over ||= !savepoint;
    await this.#control(savepoint ? 'rollback to work' : 'rollback');
  }

  /** Commits all finished turns or none of them. */
  async commit(): Promise<CommitKind> {
    const finished = this.#finished;
    this.#finished = [];
    const error = await this.#end(finished.length > 0);
    for (const turn of finished) turn.answer(error);
    const writers = error === undefined ? finished.filter(({ wrote }) => wrote) : [];
    if (writers.length === 0) return 'empty';
    this.#callers = writers.map(({ caller }) => caller);
    return writers.every(({ background }) => background) ? 'background' : 'foreground';
  }

  /** Ends the shared transaction; returns the error if it did not commit. */
  async #end(anyFinished: boolean): Promise<unknown> {
    if (!anyFinished) {
      if (!this.over) await this.#control('rollback');
      return undefined;
    }
    // The batch failed before COMMIT was sent, so nothing was committed.
    if (this.over || this.#session.broken) return commitFailed(undefined);
    try {
      const { command } = await this.#session.run('commit');
      // The server has already responded to the statements of the first turn. If one of them failed, COMMIT rolled
      // back.
      const failure = await this.#first?.answered();
      return command === 'COMMIT' ? undefined : (failure ?? commitFailed(undefined));
    } catch (error) {
      if (!this.#session.broken) return isDiskFull(error) ? error : commitFailed(error);
      return await outcomeOfLostCommit(this.#session, this.#transaction, {
        reconnect: this.#reconnect,
        cause: error,
      });
    }
  }

  /**
   * Runs a statement on which the whole batch depends. Returns false if the statement failed, which fails the batch.
   */
  async #control(sql: string): Promise<boolean> {
    try {
      await this.#session.run(sql);
      return true;
    } catch (error) {
      this.#over = true;
      await this.#session.close();
      // Other errors are reported by `commit()`, which would hide an internal error.
      if (error instanceof InternalError) throw error;
      return false;
    }
  }
}
