/** A sleep that can be cut short; one sleeper at a time. */
export class Alarm {
  #wake: (() => void) | undefined;

  /** Resolves after `ms` milliseconds, or when {@link Alarm.ring} is called. Keeps no process alive. */
  async sleep(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms).unref();
    this.#wake = resolve;
    await promise;
    this.#wake = undefined;
    clearTimeout(timer);
  }

  /** Wakes the sleeper, if there is one. */
  ring(): void {
    this.#wake?.();
  }
}
