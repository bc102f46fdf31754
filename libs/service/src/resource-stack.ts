/** A stack of open resources that are closed in reverse order; replaces AsyncDisposableStack, which Node 22 lacks. */
export class ResourceStack {
  readonly #closes: (() => unknown)[] = [];

  /** Adds a function that closes a resource. */
  defer(close: () => unknown): void {
    this.#closes.push(close);
  }

  /** Adds a resource with a function that closes it, and returns the resource. */
  adopt<T>(resource: T, close: (resource: T) => unknown): T {
    this.defer(() => close(resource));
    return resource;
  }

  /**
   * Closes all resources in reverse order, even if some fail to close; a second call has no effect.
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
