import { InternalError, UnavailableError } from '@writ/kernel';
import type { CommitKind } from '../sqlite/commit-batch.ts';
import type { PostgresSession } from './postgres-session.ts';
import type { PostgresTurn } from './postgres-turn.ts';

/** One lock a schema: whoever holds it is the only one who writes there, in any process. */
const TAKE_LOCK = `select pg_advisory_xact_lock(hashtextextended('writ store ' || current_schema(), 0))`;
/** Waiting for the lock has its own limit; from then on a statement's holds. Says which transaction it is. */
const open = ({ statementTimeoutMs }: PostgresSession) =>
  `begin isolation level read committed read write; ${TAKE_LOCK}; select pg_current_xact_id()::text, set_config('statement_timeout', '${statementTimeoutMs}', true)`;

/** Opens another session to the same database. */
export type Reconnect = () => Promise<PostgresSession>;

/**
 * Several transactions, one after the other, each undone alone when it fails, under one commit and
 * the store's lock. A work that finished is answered only when that commit is durable.
 */
export class PostgresBatch {
  readonly #session: PostgresSession;
  readonly #reconnect: Reconnect;
  /** The server's number for the shared transaction, by which its fate can be asked. */
  readonly #transaction: string;
  #finished: PostgresTurn[] = [];
  #callers: readonly unknown[] = [];
  #served = 0;
  #over = false;

  private constructor(session: PostgresSession, reconnect: Reconnect, transaction: string) {
    this.#session = session;
    this.#reconnect = reconnect;
    this.#transaction = transaction;
  }

  /**
   * Opens the shared transaction once no other process writes.
   * @throws UnavailableError STORE_BUSY, STORE_UNREACHABLE
   */
  static async begin(session: PostgresSession, reconnect: Reconnect): Promise<PostgresBatch> {
    try {
      const { text } = await session.run(open(session));
      return new PostgresBatch(session, reconnect, text);
    } catch (error) {
      // Waiting for the lock failed inside of a transaction that is open by then.
      await session.close();
      throw error;
    }
  }

  /** Of those who wrote, once it is committed. */
  get callers(): readonly unknown[] {
    return this.#callers;
  }

  /** Whether nothing more may join. */
  get over(): boolean {
    return this.#over || this.#session.broken;
  }

  /** Serves one turn to its end. */
  async serve(turn: PostgresTurn): Promise<void> {
    const savepoint = this.#served > 0;
    this.#served += 1;
    // Not awaited: what the turn asks is answered after it. Shadows the one before, which is kept.
    const begun = savepoint ? this.#control('savepoint work') : Promise.resolve(true);
    const ending = await turn.serve(this.#session);
    if (!(await begun)) {
      turn.answer(commitFailed(undefined));
      return;
    }
    if (ending === 'finished') {
      this.#finished.push(turn);
    } else if (savepoint) {
      await this.#control('rollback to work');
    } else {
      this.#over = true;
      await this.#control('rollback');
    }
  }

  /** Makes durable what finished and answers its callers: all of them, or none. */
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

  /** Ends the shared transaction; returns why what finished is not stored, if it is not. */
  async #end(anyFinished: boolean): Promise<unknown> {
    if (!anyFinished) {
      if (!this.over) await this.#control('rollback');
      return undefined;
    }
    // Nothing that was not sent can have been committed.
    if (this.over || this.#session.broken) return commitFailed(undefined);
    try {
      const { command } = await this.#session.run('commit');
      return command === 'COMMIT' ? undefined : commitFailed(undefined);
    } catch (error) {
      if (!this.#session.broken) return commitFailed(error);
      return await this.#fateOf(error);
    }
  }

  /**
   * The connection went with the answer to COMMIT; the server knows what became of it. One that has crashed
   * since may have given the number of a transaction that it lost to another, whose success is not ours.
   */
  async #fateOf(cause: unknown): Promise<unknown> {
    try {
      const session = await this.#reconnect();
      try {
        await session.run(open(session));
        const { text } = await session.run(`select pg_xact_status('${this.#transaction}')`);
        if (text === 'committed' && session.serverLife === this.#session.serverLife)
          return undefined;
        if (text === 'aborted') return commitFailed(cause);
      } finally {
        await session.close();
      }
    } catch (error) {
      return commitUnknown(error);
    }
    return commitUnknown(cause);
  }

  /** Runs a statement on which the whole batch depends; false when it failed, and the batch with it. */
  async #control(sql: string): Promise<boolean> {
    try {
      await this.#session.run(sql);
      return true;
    } catch (error) {
      this.#over = true;
      await this.#session.close();
      // Its waiters are told by commit(); a fault of our own must not hide behind that.
      if (error instanceof InternalError) throw error;
      return false;
    }
  }
}

function commitFailed(cause: unknown): UnavailableError {
  return new UnavailableError(
    'STORE_COMMIT_FAILED',
    'The commit of this transaction failed; nothing of it is stored.',
    {},
    { cause },
  );
}

function commitUnknown(cause: unknown): UnavailableError {
  return new UnavailableError(
    'STORE_COMMIT_UNKNOWN',
    'The database went away during a commit and could not be asked what became of it; repeat the same request.',
    {},
    { cause },
  );
}
