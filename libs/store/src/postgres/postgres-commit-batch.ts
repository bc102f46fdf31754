import { InternalError } from '@writ/kernel';
import { isDiskFull } from '../disk-full.ts';
import type { CommitKind } from '../sqlite/commit-batch.ts';
import { beginTransaction } from './begin-transaction.ts';
import { commitFailed, outcomeOfLostCommit, type Reconnect } from './lost-commit.ts';
import type { PostgresSession } from './postgres-session.ts';
import type { PostgresTurn } from './postgres-turn.ts';
import type { LockSet } from './write-locks.ts';

/**
 * Several transactions, one after the other, under one commit and the locks of all of them; a failed one is rolled back
 * alone. Finished work resolves only when the commit is durable.
 */
export class PostgresCommitBatch {
  readonly #session: PostgresSession;
  readonly #reconnect: Reconnect;
  /** The id of the shared transaction, to look up its status after a lost COMMIT. */
  readonly #transaction: string;
  #finished: PostgresTurn[] = [];
  /** The first turn, while its last statements may be unanswered. */
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
      const { text } = await session.run(beginTransaction(session, locks));
      return new PostgresCommitBatch(session, reconnect, text);
    } catch (error) {
      // The wait for a lock failed inside of the open transaction.
      await session.close();
      throw error;
    }
  }

  /** The callers of transactions that wrote, after the commit. */
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
    // Not awaited: the session answers the queries of the turn after it. Shadows the previous savepoint.
    const begun = savepoint ? this.#control('savepoint work') : Promise.resolve(true);
    const ending = await turn.serve(this.#session);
    if (ending === 'finished' && !savepoint) {
      // Without another turn the commit follows its last statements at once.
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

  /** Waits for the answers to the statements of the first turn; false if one failed, which ends the batch. */
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
    // COMMIT was not sent, so nothing was committed.
    if (this.over || this.#session.broken) return commitFailed(undefined);
    try {
      const { command } = await this.#session.run('commit');
      // Answered before the commit, which is a rollback after an error.
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

  /** Runs a statement that the whole batch depends on; false if it failed and with it the batch. */
  async #control(sql: string): Promise<boolean> {
    try {
      await this.#session.run(sql);
      return true;
    } catch (error) {
      this.#over = true;
      await this.#session.close();
      // commit() reports to the waiters; an internal error must not be hidden by that.
      if (error instanceof InternalError) throw error;
      return false;
    }
  }
}
