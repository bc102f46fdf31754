import type { EventEmitter } from 'node:events';

/** Signals within this time after the first one belong to the same Ctrl-C, ms. */
const SAME_MS = 1_000;

/**
 * Returns a signal that aborts on the first SIGINT or SIGTERM. A SIGINT or SIGTERM more than a second later ends the
 * process immediately. On Ctrl-C, a terminal sends SIGINT to npm and to this process, and npm forwards it to this
 * process, so further signals within a second are ignored; if npm started this process, a second signal of the same
 * kind is ignored even if it is later, because npm can be slow on a busy machine.
 *
 * @param source emitter of the signals
 * @param end ends the process immediately
 * @param isUnderNpm whether npm started this process
 */
export function stopSignal(
  source: EventEmitter = process,
  end: (signal: NodeJS.Signals) => void = endBy,
  isUnderNpm = process.env.npm_lifecycle_event !== undefined,
): AbortSignal {
  const stop = new AbortController();
  let first: NodeJS.Signals | undefined;
  let firstAt = 0;
  let count = 0;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    source.on(signal, () => {
      count += 1;
      if (count === 1) {
        first = signal;
        firstAt = performance.now();
        stop.abort();
        return;
      }
      const isForwarded = isUnderNpm && count === 2 && signal === first;
      if (!isForwarded && performance.now() - firstAt >= SAME_MS) end(signal);
    });
  }
  return stop.signal;
}

/** Ends this process with the default action of the signal. */
function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}
