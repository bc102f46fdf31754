/** Requests that begin in one turn of the event loop. */
const PER_TURN = 16;

/**
 * Begins at most {@link PER_TURN} requests in one turn of the event loop, the others in the following turns in the
 * order of their arrival: a connection can deliver a thousand at once, and a halt must not wait for all of them (BD-2).
 */
export class BeginInTurns {
  readonly #waiting: (() => void)[] = [];
  #begun = 0;
  #isScheduled = false;

  /** Calls `begin` now or in a later turn. */
  add(begin: () => void): void {
    this.#schedule();
    if (this.#begun >= PER_TURN || this.#waiting.length > 0) {
      this.#waiting.push(begin);
      return;
    }
    this.#begun += 1;
    begin();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      const due = this.#waiting.splice(0, PER_TURN);
      this.#begun = due.length;
      if (due.length > 0) this.#schedule();
      for (const begin of due) begin();
    });
  }
}
