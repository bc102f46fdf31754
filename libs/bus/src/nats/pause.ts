/** Waits that can be cut short, once and for all. */
export class Pause {
  readonly #ends = new Set<() => void>();
  #ended = false;

  /** Resolves after so many milliseconds, or at the end. */
  async wait(ms: number): Promise<void> {
    if (this.#ended) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    this.#ends.add(resolve);
    await promise;
    clearTimeout(timer);
    this.#ends.delete(resolve);
  }

  /** Ends all waits, those to come, too. */
  end(): void {
    this.#ended = true;
    for (const end of this.#ends) end();
  }
}
