import { InternalError } from '@writ/kernel';
import { refuseTransactionControl } from '../connection-refusals.ts';
import type { TransactionOptions } from '../store.ts';
import type { PostgresSession, SessionResult } from './postgres-session.ts';
import type { WriteScope } from './write-locks.ts';

/** The turn of one transaction on the writing session. */
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
  /** The error of a statement that nothing waited for. */
  #failure: unknown;
  #wrote = false;

  /** @param caller from the observer of commits */
  constructor(
    { urgent = false, background = false }: TransactionOptions,
    scope: WriteScope,
    caller?: unknown,
  ) {
    this.urgent = urgent;
    this.background = background;
    this.scope = scope;
    this.caller = caller;
    // Awaited by finish(); after a rollback nothing awaits it.
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

  /** Begins the turn; resolves when it has ended, maybe before all of its statements are answered. */
  async serve(session: PostgresSession): Promise<'finished' | 'rolled back'> {
    this.#session = session;
    this.#state = 'open';
    this.#started.resolve(this);
    return await this.#ended.promise;
  }

  /** Waits for the answers to its statements; resolves with the error that it ends with if one of them failed. */
  async answered(): Promise<unknown> {
    await Promise.allSettled(this.#inFlight);
    return this.#failed ? (this.#failure ?? transactionLost()) : undefined;
  }

  /** Rejects the turn before it begins. */
  refuse(error: unknown): void {
    this.#started.reject(error);
  }

  /** Reports whether the turn is durable. */
  answer(error?: unknown): void {
    if (error === undefined) this.#durable.resolve();
    else this.#durable.reject(error);
  }

  /**
   * Runs one query during the turn.
   * @throws InternalError STORE_TRANSACTION_ENDED, STORE_TRANSACTION_CONTROL
   */
  async run<R>(sql: string, parameters: readonly unknown[]): Promise<SessionResult<R>> {
    return await this.#query<R>(sql, parameters, 'awaited');
  }

  /**
   * Sends a statement that nothing waits for except the end of the turn, which fails with its error.
   * @throws InternalError STORE_TRANSACTION_ENDED, STORE_TRANSACTION_CONTROL
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
        'A query ran after the end of its transaction; await every query inside of the work.',
      );
    }
    refuseTransactionControl(sql);
    const answer = this.#answerOf(this.#session.query<R>(sql, parameters), kind);
    this.#inFlight.add(answer);
    const forget = () => void this.#inFlight.delete(answer);
    answer.then(forget, forget);
    return answer;
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
      // PostgreSQL has aborted the transaction even if the work handles the error.
      this.#failed = true;
      if (kind === 'ahead') this.#failure ??= error;
      // What failed before is the cause.
      throw this.#failure ?? error;
    }
  }

  /** Ends the turn with its changes; resolves when they are durable. */
  async finish(): Promise<void> {
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
    'A statement of the transaction failed and the work continued; it was rolled back.',
  );
}
