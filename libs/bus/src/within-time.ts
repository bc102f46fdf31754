import { DeadlineError } from '@writ/kernel';

/**
 * What a consumer's handler does with a message, or a rejection when that takes too long; the handler
 * itself is not stopped.
 * @throws DeadlineError BUS_HANDLER_TIMEOUT after `limit` milliseconds
 */
export async function withinTime(
  consumer: string,
  limit: number,
  handling: Promise<void>,
): Promise<void> {
  const expired = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    expired.reject(
      new DeadlineError(
        'BUS_HANDLER_TIMEOUT',
        `${consumer} took longer than ${limit} ms over one message.`,
        { limit_ms: String(limit) },
      ),
    );
  }, limit);
  try {
    await Promise.race([handling, expired.promise]);
  } finally {
    clearTimeout(timer);
  }
}
