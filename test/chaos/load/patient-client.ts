import { setTimeout as pause } from 'node:timers/promises';
import type { WritClient } from '@writ/client';
import { isWritError } from '@writ/kernel';

const ASK_AGAIN_MS = 150;
/** A supervisor that says nothing for so long is left for the other one. */
const ANSWER_WITHIN_MS = 4_000;

/** A client that knows every supervisor, and asks the next one until it is answered. */
export class PatientClient {
  readonly #clients: readonly WritClient[];
  #next: number;

  constructor(clients: readonly WritClient[], first: number) {
    this.#clients = clients;
    this.#next = first;
  }

  /**
   * Makes a call that may be made again, until it is answered.
   * @throws what is an answer, such as that something does not exist; what `signal` was aborted with
   */
  async call<T>(
    work: (client: WritClient, options: { readonly signal: AbortSignal }) => Promise<T>,
    signal: AbortSignal,
    withinMs = ANSWER_WITHIN_MS,
  ): Promise<T> {
    for (;;) {
      signal.throwIfAborted();
      const client = this.#clients[this.#next % this.#clients.length];
      this.#next += 1;
      if (client === undefined) throw new Error('There is no supervisor.');
      const patience = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
      try {
        return await work(client, { signal: patience });
      } catch (error) {
        signal.throwIfAborted();
        if (!patience.aborted && isAnswer(error)) throw error;
      }
      await pause(ASK_AGAIN_MS);
    }
  }
}

/** What becomes of a call on a wire that fails; anything else is said by a supervisor. */
const NO_ANSWER: readonly string[] = [
  'unavailable',
  'deadline_exceeded',
  'cancelled',
  'aborted',
  'resource_exhausted',
];

function isAnswer(error: unknown): boolean {
  return isWritError(error) && !NO_ANSWER.includes(error.kind);
}
