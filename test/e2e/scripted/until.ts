import { setTimeout as pause } from 'node:timers/promises';

/** Liveness limit, far longer than any condition takes on a busy machine. */
const TIMEOUT_MS = 60_000;

/**
 * Polls until `check` returns a value, and returns it.
 * @throws Error naming `what` after the liveness limit
 */
export async function until<T>(
  what: string,
  check: () => T | undefined | Promise<T | undefined>,
  intervalMs = 10,
): Promise<T> {
  const end = performance.now() + TIMEOUT_MS;
  for (;;) {
    const value = await check();
    if (value !== undefined) return value;
    if (performance.now() > end) throw new Error(`Timed out waiting for ${what}.`);
    await pause(intervalMs);
  }
}
