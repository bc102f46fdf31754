import { CancellationError } from '@writ/kernel';

/**
 * Runs `work` until it ends, or until Ctrl-C or SIGTERM abort its signal.
 * @returns what `work` returns, or `interrupted` when it was aborted
 */
export async function untilInterrupted<T>(
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | 'interrupted'> {
  const stop = new AbortController();
  const interrupt = (): void => stop.abort();
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  try {
    return await work(stop.signal);
  } catch (error) {
    if (stop.signal.aborted && error instanceof CancellationError) return 'interrupted';
    throw error;
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}
