import { setTimeout as pause } from 'node:timers/promises';
import { isWritError } from '@writ/kernel';

/** Retries an idempotent start after the delay that the platform returns, until the start is admitted (BD-5). */
export async function untilAdmitted<T>(start: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (!isWritError(error) || error.reason !== 'START_QUEUE_FULL') throw error;
      await pause(Number(error.metadata.retry_after_ms));
    }
  }
}
