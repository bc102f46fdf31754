import { setTimeout as pause } from 'node:timers/promises';

/**
 * Looks until there is something to see, and answers it.
 * @throws Error naming `what` when there was nothing for `timeoutMs`
 */
export async function until<T>(
  what: string,
  look: () => T | undefined | Promise<T | undefined>,
  timeoutMs = 60_000,
): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    if (Date.now() > end) throw new Error(`Waited in vain for ${what}.`);
    await pause(10);
  }
}
