import { setTimeout as pause } from 'node:timers/promises';
import type { WritClient } from '@writ/client';
import { isWritError } from '@writ/kernel';

const RETRY_DELAY_MS = 150;
/** Attempt timeout, after which the client fails over to the next supervisor. */
const ATTEMPT_TIMEOUT_MS = 4_000;

/** A client that fails over between all supervisors until one of them answers. */
export class RetryingClient {
  readonly #clients: readonly WritClient[];
  #next: number;

  constructor(clients: readonly WritClient[], first: number) {
    this.#clients = clients;
    this.#next = first;
  }

  /**
   * Retries an idempotent call until a supervisor answers.
   * @throws a final error of the call, such as not_found; the abort reason of `signal`
   */
  async call<T>(
    work: (client: WritClient, options: { readonly signal: AbortSignal }) => Promise<T>,
    signal: AbortSignal,
    attemptTimeoutMs = ATTEMPT_TIMEOUT_MS,
  ): Promise<T> {
    for (;;) {
      signal.throwIfAborted();
      const client = this.#clients[this.#next % this.#clients.length];
      this.#next += 1;
      if (client === undefined) throw new Error('The client has no supervisor.');
      const attemptSignal = AbortSignal.any([signal, AbortSignal.timeout(attemptTimeoutMs)]);
      try {
        return await work(client, { signal: attemptSignal });
      } catch (error) {
        signal.throwIfAborted();
        if (!attemptSignal.aborted && isFinal(error)) throw error;
      }
      await pause(RETRY_DELAY_MS);
    }
  }
}

/** Error kinds of a failing connection or an overloaded supervisor; an error of any other kind is final. */
const RETRYABLE: readonly string[] = [
  'unavailable',
  'deadline_exceeded',
  'cancelled',
  'aborted',
  'resource_exhausted',
];

function isFinal(error: unknown): boolean {
  return isWritError(error) && !RETRYABLE.includes(error.kind);
}
