import { InternalError } from '@writ/kernel';
import { refuseTransactionControl } from '../connection-refusals.ts';
import type { TransactionOptions } from '../store.ts';
import type { PostgresSession, SessionResult } from './postgres-session.ts';
import { type SentValue, toSent } from './postgres-values.ts';
import type { WriteScope } from './write-locks.ts';

/** One write transaction, first queued and then run on a writing session. */
export class PostgresTurn {
  readonly urgent: boolean;
  readonly background: boolean;
  readonly scope: WriteScope;
  readonly caller: unknown;
  readonly #started = Promise.withResolvers<PostgresTurn>();
  readonly #ended = Promise.withResolvers<'finished' | 'rolled back'>();
  readonly #durable = Promise.withResolvers<void>();
  readonly #inFlight = new Set<Promise<unknown>>();
  #session: PostgresSession | undefined;
  #state: 'new' | 'open' | 'over' = 'new';
  #failed = false;
  /** The error of a statement whose response was not awaited. */
  #failure: unknown;
  /** The error of a statement that was not sent, because the server cannot store one of its values. */
  #unsent: unknown;
  #wrote = false;

  /** @param caller the value that the commit observer returned for the caller */
  constructor(
    { urgent = false, background = false }: TransactionOptions,
    scope: WriteScope,
    caller?: unknown,
  ) {
    this.urgent = urgent;
    this.background = background;
    this.scope = scope;
    this.caller = caller;
    // `finish()` awaits this promise. After a rollback it is not awaited, so a rejection must not be reported as
    // unhandled.
    this.#durable.promise.catch(() => undefined);
  }

  /** Resolves with this turn when it begins. */
  get started(): Promise<PostgresTurn> {
    return this.#started.promise;
  }

  /** Whether one of its statements changed rows. */
  get wrote(): boolean {
    return this.#wrote;
  }

  /**
   * Begins the turn; resolves when the turn has ended, possibly before the server has responded to all of its
   * statements.
   */
  async serve(session: PostgresSession): Promise<'finished' | 'rolled back'> {
    this.#session = session;
    this.#state = 'open';
    this.#started.resolve(this);
    return await this.#ended.promise;
  }

  /** Waits for the responses to all statements; resolves with the error of the transaction if a statement failed. */
  async answered(): Promise<unknown> {
    await Promise.allSettled(this.#inFlight);
    return this.#failed ? (this.#failure ?? transactionLost()) : undefined;
  }

  /** Rejects the turn before it begins. */
  refuse(error: unknown): void {
    this.#started.reject(error);
  }

  /** Reports that the turn is durable, or the error with which it failed. */
  answer(error?: unknown): void {
    if (error === undefined) this.#durable.resolve();
    else this.#durable.reject(error);
  }

  /**
   * Runs one query during the turn.
   * @throws InternalError STORE_TRANSACTION_ENDED, STORE_TRANSACTION_CONTROL, STORE_INVALID_PARAMETER
   */
  async run<R>(sql: string, parameters: readonly unknown[]): Promise<SessionResult<R>> {
    return await this.#query<R>(sql, parameters, 'awaited');
  }

  /**
   * Sends a statement without waiting for its response. The end of the turn waits for the response, and the turn fails
   * with the error of the statement.
   * @throws InternalError STORE_TRANSACTION_ENDED, STORE_TRANSACTION_CONTROL, STORE_INVALID_PARAMETER
   */
  send(sql: string, parameters: readonly unknown[]): void {
    this.#query(sql, parameters, 'ahead').catch(() => undefined);
  }

  #query<R>(
    sql: string,
    parameters: readonly unknown[],
    kind: 'awaited' | 'ahead',
  ): Promise<SessionResult<R>> {
    if (this.#session === undefined || this.#state !== 'open') {
      throw new InternalError(
        'STORE_TRANSACTION_ENDED',
        'A query ran after the end of its transaction; await every query inside the transaction callback.',
      );
    }
    refuseTransactionControl(sql);
    const values = this.#encode(parameters);
    const answer = this.#answerOf(this.#session.queryEncoded<R>(sql, values), kind);
    this.#inFlight.add(answer);
    const forget = () => void this.#inFlight.delete(answer);
    answer.then(forget, forget);
    return answer;
  }

  #encode(parameters: readonly unknown[]): SentValue[] {
    try {
      return parameters.map(toSent);
    } catch (error) {
      this.#unsent ??= error;
      throw error;
    }
  }

  async #answerOf<R>(
    query: Promise<SessionResult<R>>,
    kind: 'awaited' | 'ahead',
  ): Promise<SessionResult<R>> {
    try {
      const result = await query;
      this.#wrote ||= result.wrote;
      return result;
    } catch (error) {
      // PostgreSQL has aborted the transaction, even if the callback handles the error.
      this.#failed = true;
      if (kind === 'ahead') this.#failure ??= error;
      // If an earlier statement that was not awaited has failed, throws the error of that statement, which caused the
      // present error.
      throw this.#failure ?? error;
    }
  }

  /**
   * Ends the turn and keeps its changes; resolves when they are durable. If a statement was not sent, rolls back and
   * rejects with its error, even if the callback has handled the error, because the server would commit the others.
   */
  async finish(): Promise<void> {
    if (this.#unsent !== undefined) {
      this.leave();
      throw this.#unsent;
    }
    this.#state = 'over';
    this.#ended.resolve('finished');
    await this.#durable.promise;
  }

  /** Ends the turn and rolls back unfinished work. Idempotent. */
  leave(): void {
    this.#state = 'over';
    this.#ended.resolve('rolled back');
  }
}

function transactionLost(): InternalError {
  return new InternalError(
    'STORE_TRANSACTION_LOST',
    'A statement failed but the transaction callback continued; the transaction was rolled back.',
  );
}
