/**
 * Resolves to whether `work` settles within `ms` milliseconds; a rejection counts as settled. The work is
 * not cancelled, and the timer does not keep the process alive.
 */
export async function settlesWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  const settled = work.then(
    () => true,
    () => true,
  );
  return await withTimeout(settled, ms, () => false);
}

/**
 * The result of `work`, or of `onTimeout` when `work` takes longer than `ms` milliseconds. The work is not
 * cancelled: its late result, or its late rejection, is discarded. The timer does not keep the process alive.
 *
 * @throws what `work` throws in time, or what `onTimeout` throws
 * @example
 * ```ts
 * import { withTimeout } from '@writ/kernel';
 *
 * const greeting: string = await withTimeout(Promise.resolve('hello'), 1_000, () => 'too late');
 * ```
 */
export async function withTimeout<T, L = T>(
  work: Promise<T>,
  ms: number,
  onTimeout: () => L,
): Promise<T | L> {
  const expired = Promise.withResolvers<'expired'>();
  const timer = setTimeout(expired.resolve, ms, 'expired').unref();
  const finished = work.then((value) => ({ value }));
  try {
    const first = await Promise.race([finished, expired.promise]);
    if (first !== 'expired') return first.value;
  } finally {
    clearTimeout(timer);
  }
  finished.catch(() => {
    // A rejection after the time limit has no reader.
  });
  return onTimeout();
}
