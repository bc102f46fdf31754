/** Maximum number of tasks that run in one turn of the event loop. */
const PER_TURN = 16;

/**
 * Runs at most {@link PER_TURN} tasks in one turn of the event loop and defers the others, in order of arrival, to the
 * following turns. A connection can deliver a thousand requests at once, or cancel them at once when it closes; a halt
 * must not wait for all of them (BD-2).
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
