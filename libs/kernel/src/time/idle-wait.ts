/** Lets a shutdown wait until nothing is in progress. */
export class IdleWait {
  #onIdle: (() => void) | undefined;

  /** Must be called whenever nothing is in progress any more. */
  notify(): void {
    this.#onIdle?.();
  }

  /** Resolves at the next call of {@link IdleWait.notify}, or after `limitMs`; never rejects. */
  async wait(limitMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#onIdle = undefined;
  }
}
