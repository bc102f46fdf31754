/** What was opened, to be closed in reverse order: AsyncDisposableStack, which Node 22 lacks. */
export class ResourceStack {
  readonly #closes: (() => unknown)[] = [];

  /** Adds how to close one more resource. */
  defer(close: () => unknown): void {
    this.#closes.push(close);
  }

  /** Adds a resource with how to close it, and returns the resource. */
  adopt<T>(resource: T, close: (resource: T) => unknown): T {
    this.defer(() => close(resource));
    return resource;
  }

  /**
   * Closes everything, the last first, also after an error; a second call has no effect.
   * @throws the first error
   */
  async close(): Promise<void> {
    const errors: unknown[] = [];
    for (let close = this.#closes.pop(); close !== undefined; close = this.#closes.pop()) {
      try {
        await close();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
