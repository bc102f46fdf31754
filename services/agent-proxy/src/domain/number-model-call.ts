/** What is known of the latest of equal requests. */
export interface LatestCall {
  readonly number: number;
  /** Whether its client received the whole answer. */
  readonly delivered: boolean;
  /** Whether its client is still connected here. */
  readonly connected: boolean;
}

/**
 * Returns the number of a request among those with equal bytes (AP-2). It repeats the latest one, and then pays nothing,
 * when its client says so, or when the latest client left before it had its answer. Otherwise it is a new sample, so that
 * equal prompts in parallel stay independent.
 * @param isRetry whether the client marks the request as a retry
 */
export function nextCallNumber(latest: LatestCall | undefined, isRetry: boolean): number {
  if (latest === undefined) return 1;
  const isAbandoned = !latest.delivered && !latest.connected;
  return isRetry || isAbandoned ? latest.number : latest.number + 1;
}
