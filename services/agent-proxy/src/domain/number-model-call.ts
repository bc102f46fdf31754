/** The state of the latest of several equal requests. */
export interface LatestCall {
  readonly number: number;
  /** Whether its client received the whole answer. */
  readonly delivered: boolean;
  /** Whether its client is still connected to this replica. */
  readonly connected: boolean;
}

/**
 * Returns the number of a request among equal requests (AP-2). The request repeats the latest one, which costs
 * nothing, when its client marks it as a retry, or when the latest request was not answered completely and its client
 * is not connected to this replica. Otherwise it is a new sample, so that equal parallel prompts on one replica stay
 * independent; on different replicas, they share one call.
 * @param isRetry whether the client marks the request as a retry
 */
export function nextCallNumber(latest: LatestCall | undefined, isRetry: boolean): number {
  if (latest === undefined) return 1;
  const isAbandoned = !latest.delivered && !latest.connected;
  return isRetry || isAbandoned ? latest.number : latest.number + 1;
}
