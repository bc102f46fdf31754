/** Default number of restarts of a failed agent (SUP-7). */
export const DEFAULT_MAX_RETRIES = 3;

/**
 * Limits the restarts of failed agents (SUP-7). It has no clock and no back-off. The counts can be stored and
 * restored, so that they survive a crash.
 */
export class RetryPolicy {
  readonly maxRetries: number;
  readonly #counts: Map<string, number>;

  constructor(maxRetries = DEFAULT_MAX_RETRIES, counts: Readonly<Record<string, number>> = {}) {
    this.maxRetries = maxRetries;
    this.#counts = new Map(Object.entries(counts));
  }

  /** Whether `agent` may be restarted once more; counts the restart if so (SUP-7). */
  shouldRetry(agent: string): boolean {
    const count = this.#counts.get(agent) ?? 0;
    if (count >= this.maxRetries) return false;
    this.#counts.set(agent, count + 1);
    return true;
  }

  /** Resets the restarts of `agent` after a success (SUP-7). */
  reset(agent: string): void {
    this.#counts.delete(agent);
  }

  /** The restarts by agent, for storage. */
  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }
}
