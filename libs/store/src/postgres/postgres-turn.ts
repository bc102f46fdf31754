import { InternalError } from '@writ/kernel';
import { refuseTransactionControl } from '../connection-refusals.ts';
import type { PostgresSession, SessionResult } from './postgres-session.ts';

/** One transaction's time at the writing session: from being let in to letting go. */
export class PostgresTurn {
  readonly background: boolean;
  readonly caller: unknown;
  readonly #started = Promise.withResolvers<PostgresTurn>();
  readonly #ended = Promise.withResolvers<'finished' | 'undone'>();
  readonly #durable = Promise.withResolvers<void>();
  readonly #underWay = new Set<Promise<unknown>>();
  #session: PostgresSession | undefined;
  #state: 'new' | 'open' | 'over' = 'new';
  #failed = false;
  #wrote = false;

  /** @param caller what the observer of commits said of whoever asked */
  constructor(background: boolean, caller?: unknown) {
    this.background = background;
    this.caller = caller;
    // It is awaited by whoever finishes; a turn that was undone has nobody to tell.
    this.#durable.promise.catch(() => undefined);
  }

  /** Resolves with this turn when it is let in. */
  get started(): Promise<PostgresTurn> {
    return this.#started.promise;
  }

  /** Whether a statement of it changed rows. */
  get wrote(): boolean {
    return this.#wrote;
  }

  /** Lets the holder in, and resolves with how it left, once all its queries are answered. */
  async serve(session: PostgresSession): Promise<'finished' | 'undone'> {
    this.#session = session;
    this.#state = 'open';
    this.#started.resolve(this);
    const ending = await this.#ended.promise;
    await Promise.allSettled(this.#underWay);
    if (ending === 'undone' || !this.#failed) return ending;
    this.answer(transactionLost());
    return 'undone';
  }

  /** Tells the holder that it is not let in. */
  refuse(error: unknown): void {
    this.#started.reject(error);
  }

  /** Tells the holder that it is durable, or why not. */
  answer(error?: unknown): void {
    if (error === undefined) this.#durable.resolve();
    else this.#durable.reject(error);
  }

  /**
   * Runs one query while the turn lasts.
   * @throws InternalError STORE_TRANSACTION_ENDED, STORE_TRANSACTION_CONTROL
   */
  async run<R>(sql: string, parameters: readonly unknown[]): Promise<SessionResult<R>> {
    if (this.#session === undefined || this.#state !== 'open') {
      throw new InternalError(
        'STORE_TRANSACTION_ENDED',
        'A query came after its transaction had ended; await every query inside of the work.',
      );
    }
    refuseTransactionControl(sql);
    const query = this.#session.query<R>(sql, parameters);
    this.#underWay.add(query);
    try {
      const result = await query;
      this.#wrote ||= result.wrote;
      return result;
    } catch (error) {
      // PostgreSQL takes no more of this transaction, whatever the work makes of the error.
      this.#failed = true;
      throw error;
    } finally {
      this.#underWay.delete(query);
    }
  }

  /** Keeps what was done and lets go; resolves when it is durable. */
  async finish(): Promise<void> {
    this.#state = 'over';
    this.#ended.resolve('finished');
    await this.#durable.promise;
  }

  /** Undoes what was not finished and lets go; harmless when that has happened already. */
  leave(): void {
    this.#state = 'over';
    this.#ended.resolve('undone');
  }
}

function transactionLost(): InternalError {
  return new InternalError(
    'STORE_TRANSACTION_LOST',
    'A statement of this transaction failed and the work went on; nothing of it is stored.',
  );
}
