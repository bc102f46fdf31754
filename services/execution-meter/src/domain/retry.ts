/** How long to wait between attempts of a model call. */
export interface BackOff {
  /** Milliseconds that the first retry waits at most, doubling from there. */
  readonly baseMs: number;
  /** Milliseconds that any retry waits at most, unless the provider asks for more. */
  readonly maxMs: number;
  /** Most that a provider may ask for with Retry-After. */
  readonly maxAskedMs: number;
}

/** 500 ms doubling to 8 s; up to 30 s when the provider asks for it. */
export const DEFAULT_BACK_OFF: BackOff = Object.freeze({
  baseMs: 500,
  maxMs: 8_000,
  maxAskedMs: 30_000,
});

/**
 * Milliseconds to wait before the attempt that follows attempt `failed`: exponential with full jitter
 * (EM-8), and not less than the provider asked for. `random` is in [0, 1).
 */
export function backOffMs(
  backOff: BackOff,
  failed: number,
  random: number,
  askedMs: number | undefined,
): number {
  const ceiling = Math.min(backOff.maxMs, backOff.baseMs * 2 ** (failed - 1));
  const asked = Math.min(backOff.maxAskedMs, askedMs ?? 0);
  return Math.max(asked, Math.floor(random * ceiling));
}
