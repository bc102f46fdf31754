/** How long new tries wait. */
export interface RetryTimes {
  readonly retryBaseMs: number;
  readonly retryMaxMs: number;
}

/** Milliseconds before the next try after so many failures in a row: doubling, half of it by chance. */
export function retryDelay(failures: number, { retryBaseMs, retryMaxMs }: RetryTimes): number {
  const ceiling = Math.min(retryMaxMs, retryBaseMs * 2 ** Math.max(0, failures - 1));
  return Math.ceil(ceiling * (0.5 + Math.random() / 2));
}
