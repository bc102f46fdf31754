import { setTimeout as pause } from 'node:timers/promises';
import type { CallOptions, Client } from '@connectrpc/connect';
import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { isWritError } from '@writ/kernel';

type Runs = Client<typeof RunService>;

/**
 * Wraps startRun and runAgent: a start that is rejected with a retry delay, such as START_QUEUE_FULL, is retried with
 * the same request_id after one to two times that delay, at random, so that callers do not retry at the same time. When
 * the call would time out before the next attempt, the rejection is thrown.
 */
export function retryStarts(runs: Runs, defaultTimeoutMs: number): Runs {
  const startRun: Runs['startRun'] = async (request, options = {}) => {
    const { timeoutMs = defaultTimeoutMs } = options;
    const endsAt = endOf(timeoutMs);
    for (;;) {
      try {
        return await runs.startRun(request, { ...options, timeoutMs: millisecondsTo(endsAt) });
      } catch (error) {
        await pauseBeforeRetry(error, endsAt, options);
      }
    }
  };
  const runAgent: Runs['runAgent'] = (request, options = {}) => {
    const { timeoutMs } = options;
    const endsAt = endOf(timeoutMs ?? defaultTimeoutMs);
    const again = (): ReturnType<Runs['runAgent']> =>
      runs.runAgent(request, {
        ...options,
        ...(timeoutMs !== undefined && { timeoutMs: millisecondsTo(endsAt) }),
      });
    return started(runs.runAgent(request, options));

    async function* started(first: ReturnType<Runs['runAgent']>): ReturnType<Runs['runAgent']> {
      for (let stream = first, hasStarted = false; ; stream = again()) {
        try {
          for await (const message of stream) {
            hasStarted = true;
            yield message;
          }
          return;
        } catch (error) {
          if (hasStarted) throw error;
          await pauseBeforeRetry(error, endsAt, options);
        }
      }
    }
  };
  return { ...runs, startRun, runAgent };
}

/** Returns the time at which a timeout ends: never for a timeout of 0, which means no limit. */
function endOf(timeoutMs: number): number {
  return timeoutMs > 0 ? performance.now() + timeoutMs : Infinity;
}

/** Returns the remaining time as a timeout: a whole number of at least 1, or 0 if there is no limit. */
function millisecondsTo(endsAt: number): number {
  return endsAt === Infinity ? 0 : Math.max(1, Math.ceil(endsAt - performance.now()));
}

/** Waits before the next attempt; throws an error without a retry delay, and a rejection whose delay is too long. */
async function pauseBeforeRetry(
  error: unknown,
  endsAt: number,
  { signal }: CallOptions,
): Promise<void> {
  if (!isWritError(error) || error.kind !== 'resource_exhausted') throw error;
  const { retry_after_ms: delay } = error.metadata;
  if (delay === undefined) throw error;
  const waitMs = Number(delay) * (1 + Math.random());
  if (performance.now() + waitMs >= endsAt) throw error;
  await pause(waitMs, undefined, signal === undefined ? {} : { signal }).catch(() => {
    throw error;
  });
}
