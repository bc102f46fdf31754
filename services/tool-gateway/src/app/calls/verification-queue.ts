/**
 * Runs a limited number of tasks at a time. Takes waiting tasks from its queues in round-robin order, and starts at
 * most `limit` of them per turn of the event loop. Verifying a writ occupies the event loop, so without the queue a
 * burst of calls to one tool source would delay the calls to all other sources (TG-6).
 */
export class VerificationQueue {
  readonly #limit: number;
  /** Waiting tasks by queue name; the first queue is served next. */
  readonly #queues = new Map<string, (() => void)[]>();
  #running = 0;

  /** @param limit largest number of tasks that run at a time */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Runs `task` at once while fewer than `limit` tasks run, otherwise when the queue `name` is next; settles as the
   * task does.
   */
  async run<T>(name: string, task: () => Promise<T>): Promise<T> {
    if (this.#running < this.#limit) this.#running += 1;
    else await this.#wait(name);
    try {
      return await task();
    } finally {
      this.#release();
    }
  }

  async #wait(name: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const queue = this.#queues.get(name);
    if (queue === undefined) this.#queues.set(name, [resolve]);
    else queue.push(resolve);
    await promise;
  }

  /** Passes the permit to the next waiting task, after the I/O that is already due. */
  #release(): void {
    if (this.#queues.size > 0) setImmediate(() => this.#startNext());
    else this.#running -= 1;
  }

  #startNext(): void {
    const [next] = this.#queues;
    if (next === undefined) {
      this.#running -= 1;
      return;
    }
    const [name, queue] = next;
    const start = queue.shift();
    this.#queues.delete(name);
    if (queue.length > 0) this.#queues.set(name, queue);
    start?.();
  }
}
