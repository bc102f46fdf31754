import type { EventEmitter } from 'node:events';

/** Signals within this time of the first are the same Ctrl-C, ms. */
const SAME_MS = 1_000;

/**
 * Aborts on the first SIGINT or SIGTERM; one after that ends the process immediately. A terminal sends Ctrl-C to
 * npm and to this process, and npm forwards it, so a repetition within a second is ignored.
 *
 * @param source where the signals arrive
 * @param end ends the process immediately
 */
export function stopSignal(
  source: EventEmitter = process,
  end: (signal: NodeJS.Signals) => void = endBy,
): AbortSignal {
  const stop = new AbortController();
  let firstAt = 0;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    source.on(signal, () => {
      if (!stop.signal.aborted) {
        firstAt = performance.now();
        stop.abort();
      } else if (performance.now() - firstAt >= SAME_MS) end(signal);
    });
  }
  return stop.signal;
}

/** Ends this process as the signal does by default. */
function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}
