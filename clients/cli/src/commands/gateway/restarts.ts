/** Shares gateway restarts between concurrent cases: the gateway is killed when every running case waits for a restart. */
export class Restarts {
  readonly #restart: () => Promise<void>;
  #running: number;
  #waiting: PromiseWithResolvers<void>[] = [];

  /** @param running number of cases */
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

  /** Ends a case. */
  leave(): void {
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
