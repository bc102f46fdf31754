import { setTimeout as pause } from 'node:timers/promises';

/** Far longer than anything takes on a busy machine. */
const TIMEOUT_MS = 60_000;

/**
 * Looks every `intervalMs` until there is something to see, and answers it.
 * @throws Error naming `what` when there never was
 */
export async function until<T>(
  what: string,
  look: () => T | undefined | Promise<T | undefined>,
  intervalMs = 10,
): Promise<T> {
  const end = performance.now() + TIMEOUT_MS;
  for (;;) {
    const seen = await look();
    if (seen !== undefined) return seen;
    if (performance.now() > end) throw new Error(`Waited in vain for ${what}.`);
    await pause(intervalMs);
  }
}
