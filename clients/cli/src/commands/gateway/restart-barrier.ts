/** Restarts the gateway once for all concurrent cases: when every case that has not ended waits in `arrive`. */
export class RestartBarrier {
  readonly #restart: () => Promise<void>;
  #running: number;
  #waiting: PromiseWithResolvers<void>[] = [];

  /** @param running number of cases that run at the same time */
  constructor(running: number, restart: () => Promise<void>) {
    this.#running = running;
    this.#restart = restart;
  }

  /** Waits for the other cases; resolves when the gateway serves again. */
  async arrive(): Promise<void> {
    const waiting = Promise.withResolvers<void>();
    this.#waiting.push(waiting);
    this.#restartIfReady();
    await waiting.promise;
  }

  /** Records that a case has ended; the barrier no longer waits for it. */
  caseEnded(): void {
    this.#running -= 1;
    this.#restartIfReady();
  }

  #restartIfReady(): void {
    if (this.#waiting.length === 0 || this.#waiting.length < this.#running) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#restart().then(
      () => {
        for (const { resolve } of waiting) resolve();
      },
      (error: unknown) => {
        for (const { reject } of waiting) reject(error);
      },
    );
  }
}
