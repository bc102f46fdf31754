/** Lets cases that run together share the restarts of one gateway: it is killed once all are ready for it. */
export class Restarts {
  readonly #restart: () => Promise<void>;
  #running: number;
  #waiting: PromiseWithResolvers<void>[] = [];

  /** @param running how many cases there are */
  constructor(running: number, restart: () => Promise<void>) {
    this.#running = running;
    this.#restart = restart;
  }

  /** Waits for the others; resolves when the gateway is back. */
  async arrive(): Promise<void> {
    const waiting = Promise.withResolvers<void>();
    this.#waiting.push(waiting);
    this.#look();
    await waiting.promise;
  }

  /** A case has ended, and waits for nothing any more. */
  leave(): void {
    this.#running -= 1;
    this.#look();
  }

  #look(): void {
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
