/** The speed of an operation. */
export interface Speed {
  readonly operations: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Runs the `n`th operation; throws when it fails. */
export type Operation = (n: number) => Promise<unknown>;

let operations = 0;

/** Repeats `operation` for `forMs` with `inFlight` concurrent operations. */
export async function measure(
  operation: Operation,
  inFlight: number,
  forMs: number,
): Promise<Speed> {
  const durations: number[] = [];
  const started = performance.now();
  const one = async (): Promise<void> => {
    while (performance.now() - started < forMs) {
      const at = performance.now();
      operations += 1;
      await operation(operations);
      durations.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, one));
  const seconds = (performance.now() - started) / 1_000;
  durations.sort((a, b) => a - b);
  return {
    operations: durations.length,
    perSecond: durations.length / seconds,
    p50Ms: quantileOf(durations, 0.5),
    p99Ms: quantileOf(durations, 0.99),
  };
}

/** Returns the median of unsorted figures. */
export function median(figures: readonly number[]): number {
  return quantileOf(
    figures.toSorted((a, b) => a - b),
    0.5,
  );
}

/** Returns the quantile `q` of sorted figures. */
export function quantileOf(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}
