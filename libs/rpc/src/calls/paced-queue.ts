/** Pieces of work in one turn of the event loop. */
const PER_TURN = 16;

/**
 * Does at most {@link PER_TURN} pieces of work in one turn of the event loop, the others in the following turns in the
 * order of their arrival: a connection can deliver a thousand requests at once, and cancel them at once when it closes,
 * and a halt must not wait for all of them (BD-2).
 */
export class PacedQueue {
  readonly #waiting: (() => void)[] = [];
  #done = 0;
  #isScheduled = false;

  /** Calls `work` now or in a later turn. */
  add(work: () => void): void {
    this.#schedule();
    if (this.#done >= PER_TURN || this.#waiting.length > 0) {
      this.#waiting.push(work);
      return;
    }
    this.#done += 1;
    work();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      const due = this.#waiting.splice(0, PER_TURN);
      this.#done = due.length;
      if (due.length > 0) this.#schedule();
      for (const work of due) work();
    });
  }
}
