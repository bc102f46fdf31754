/** How often a failed agent is restarted unless its manifest says otherwise (SUP-7). */
export const DEFAULT_MAX_RETRIES = 3;

/**
 * Restarts a failed agent a limited number of times, then gives up (SUP-7). Pure bookkeeping: no
 * clock and no back-off. The counts can be stored and given back, so that a crash forgets none.
 */
export class RetryPolicy {
  readonly maxRetries: number;
  readonly #counts: Map<string, number>;

  constructor(maxRetries = DEFAULT_MAX_RETRIES, counts: Readonly<Record<string, number>> = {}) {
    this.maxRetries = maxRetries;
    this.#counts = new Map(Object.entries(counts));
  }

  /** Whether `agent` may be restarted once more; a yes is counted (SUP-7). */
  shouldRetry(agent: string): boolean {
    const count = this.#counts.get(agent) ?? 0;
    if (count >= this.maxRetries) return false;
    this.#counts.set(agent, count + 1);
    return true;
  }

  /** Forgets the restarts of `agent`, after it succeeded (SUP-7). */
  reset(agent: string): void {
    this.#counts.delete(agent);
  }

  /** The restarts so far by agent, to be stored. */
  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }
}
