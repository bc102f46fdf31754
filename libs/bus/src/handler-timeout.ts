import { DeadlineError, withTimeout } from '@writ/kernel';

/**
 * Limits the time of a consumer's handler; the handler itself is not stopped.
 * @throws DeadlineError BUS_HANDLER_TIMEOUT after `limitMs` milliseconds
 */
export async function withHandlerTimeout(
  consumer: string,
  limitMs: number,
  handling: Promise<void>,
): Promise<void> {
  await withTimeout(handling, limitMs, () => {
    throw new DeadlineError(
      'BUS_HANDLER_TIMEOUT',
      `Consumer ${consumer} did not handle a message within ${limitMs} ms.`,
      { limit_ms: String(limitMs) },
    );
  });
}
