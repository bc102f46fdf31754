/** Work in progress that equal requests of this process share. */
export class SharedWork {
  readonly #byKey = new Map<string, Promise<unknown>>();

  /**
   * Begins the work, or joins the work in progress with the same key. All work with one key must have the same result
   * type.
   */
  async share<T>(key: string, work: () => Promise<T>): Promise<T> {
    const known = this.#byKey.get(key) as Promise<T> | undefined;
    if (known !== undefined) return await known;
    const begun = work().finally(() => this.#byKey.delete(key));
    this.#byKey.set(key, begun);
    return await begun;
  }
}
