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
 * Resolves to the result of `work`, or to the result of `onTimeout` when `work` takes longer than `ms` milliseconds.
 * The work is not cancelled: its late result, or its late rejection, is discarded. The timer does not keep the process
 * alive.
 *
 * @throws what `work` throws in time, or what `onTimeout` throws
 * @example
 * ```ts
 * import { withTimeout } from '@writ/kernel';
 *
 * const greeting: string = await withTimeout(Promise.resolve('hello'), 1_000, () => 'too late');
 * ```
 */
export function withTimeout<T, L = T>(
  work: Promise<T>,
  ms: number,
  onTimeout: () => L,
): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const expire = () => resolve(new Promise<L>((late) => late(onTimeout())));
    const timer = setTimeout(expire, ms).unref();
    work.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
