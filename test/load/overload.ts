import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { isWritError, newId } from '@writ/kernel';
import { StepsHarness } from './steps/steps-harness.ts';

/** Steps of a run. */
const STEPS = 2;
/** Concurrent runs while the capacity is measured: enough to use the machine, too few to be rejected. */
const CONCURRENCY = 8;
/** Runs before the first measurement, until the code is compiled. */
const WARM_UP = 50;
/** Maximum p99 of accepted runs under overload, relative to the p99 without load. */
const MAX_SLOWDOWN = 5;

/** Options of an overload. */
export interface OverloadOptions {
  /** Number of sequential runs, from which the p99 without load is measured. */
  readonly unloadedRuns: number;
  /** Duration of the measurement of the capacity. */
  readonly capacityMs: number;
  /** Duration of the overload. */
  readonly overloadMs: number;
  /** Load as a multiple of the capacity. */
  readonly times: number;
  /** Concurrent runs of a caller that starts a new run whenever one has ended; no start may be rejected. Default 0. */
  readonly crowd?: number;
  /** Settings of the platform. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Starts runs at a multiple of the measured capacity, without waiting for earlier runs to end, and repeatedly halts a
 * tenant at the same time (BD-5, BD-2). Returns the numbers of accepted, ended and rejected runs and of halts, and the
 * slowdown of accepted runs, which the caller checks; `figures`, for printing, also contains p50 and p99 of the
 * response times of the halts.
 */
export async function overload({
  unloadedRuns,
  capacityMs,
  overloadMs,
  times,
  crowd = 0,
  env = {},
}: OverloadOptions) {
  const harness = await StepsHarness.start({ counts: [STEPS], env, retryStarts: false });
  try {
    const run = async (): Promise<number> => {
      const startedAt = performance.now();
      await harness.count(STEPS, 'a run');
      return performance.now() - startedAt;
    };
    for (let number = 0; number < WARM_UP; number += 1) await run();
    // Measured first, well before the overload, because the supervisor accepts as many runs in flight as the tenant
    // recently had. A rejection fails the test.
    const crowded = crowd === 0 ? 0 : await capacityOf(run, crowd, capacityMs);
    const unloaded: number[] = [];
    const measureUnloaded = async () => {
      for (let number = 0; number < unloadedRuns; number += 2) unloaded.push(await run());
    };
    await measureUnloaded();
    const perSecond = await capacityOf(run, CONCURRENCY, capacityMs);
    const halts = haltRepeatedly(harness);
    const flood = await openLoop(harness, perSecond * times, overloadMs);
    const haltMs = await halts.end();
    // Measured before and after the overload, so that other programs on the machine affect both figures alike.
    await measureUnloaded();
    const slowdown = quantileOf(flood.endedMs, 0.99) / quantileOf(unloaded, 0.99);
    return {
      accepted: flood.accepted,
      ended: flood.endedMs.length,
      rejected: flood.rejected,
      rejectedWithDelay: flood.rejectedWithDelay,
      failures: flood.failures,
      halts: haltMs.length,
      slowdown,
      figures: {
        'capacity, runs/s': perSecond.toFixed(1),
        ...(crowd > 0 && { [`runs/s of ${crowd} at once, none rejected`]: crowded.toFixed(1) }),
        'starts/s': (perSecond * times).toFixed(1),
        'accepted runs': flood.accepted,
        'accepted runs that ended': flood.endedMs.length,
        'rejected starts': flood.rejected,
        'p50, p99 without load, ms': p50AndP99(unloaded),
        'p50, p99 under overload, ms': p50AndP99(flood.endedMs),
        'p99 under overload / without load': slowdown.toFixed(2),
        'p50, p99 of Halt under overload, ms': p50AndP99(haltMs),
      },
    };
  } finally {
    await harness.close();
  }
}

/** Fails when accepted runs are more than {@link MAX_SLOWDOWN} times as slow as without load. */
export async function boundedOverload(): Promise<Readonly<Record<string, string | number>>> {
  const options = {
    unloadedRuns: 200,
    capacityMs: 10_000,
    overloadMs: 30_000,
    times: 2,
    crowd: 64,
  };
  const { slowdown, figures, accepted, ended, failures } = await overload(options);
  console.log(figures);
  assert.deepEqual(failures, []);
  assert.equal(ended, accepted, 'An accepted run did not end.');
  assert.ok(slowdown <= MAX_SLOWDOWN, `p99 under overload is ${slowdown.toFixed(2)} times as long`);
  return figures;
}

/** Runs per second with bounded concurrency. */
async function capacityOf(
  run: () => Promise<number>,
  concurrency: number,
  forMs: number,
): Promise<number> {
  const startedAt = performance.now();
  let count = 0;
  const one = async (): Promise<void> => {
    while (performance.now() - startedAt < forMs) {
      await run();
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, one));
  return count / ((performance.now() - startedAt) / 1_000);
}

/** Outcomes of starts at a fixed rate. */
interface Flood {
  accepted: number;
  /** Durations of the accepted runs that ended with their answer. */
  readonly endedMs: number[];
  rejected: number;
  /** Rejections that name the delay after which the caller may start again. */
  rejectedWithDelay: number;
  /** Starts that failed otherwise, and accepted runs that did not end with their answer. */
  readonly failures: string[];
}

/** Starts runs at a fixed rate; resolves when each has been rejected or has ended. */
async function openLoop(harness: StepsHarness, perSecond: number, forMs: number): Promise<Flood> {
  const flood: Flood = {
    accepted: 0,
    endedMs: [],
    rejected: 0,
    rejectedWithDelay: 0,
    failures: [],
  };
  const attempt = async (): Promise<void> => {
    const startedAt = performance.now();
    try {
      const runId = await harness.startRun(STEPS, 'a run');
      flood.accepted += 1;
      await harness.untilEnded(runId, STEPS);
      flood.endedMs.push(performance.now() - startedAt);
    } catch (error) {
      if (!isWritError(error) || error.reason !== 'START_QUEUE_FULL') {
        flood.failures.push(String(error));
        return;
      }
      flood.rejected += 1;
      if (Number(error.metadata.retry_after_ms) > 0) flood.rejectedWithDelay += 1;
    }
  };
  const attempts: Promise<void>[] = [];
  const startedAt = performance.now();
  for (let number = 0; number < (perSecond * forMs) / 1_000; number += 1) {
    await pause(Math.max(0, startedAt + (number * 1_000) / perSecond - performance.now()));
    attempts.push(attempt());
  }
  await Promise.all(attempts);
  return flood;
}

/**
 * Repeatedly halts and resumes a tenant without runs; `end` stops this and resolves with the response times of the
 * halts.
 */
function haltRepeatedly({ client }: StepsHarness): { end(): Promise<number[]> } {
  const answered: number[] = [];
  let isOver = false;
  const repeat = async (): Promise<void> => {
    do {
      const startedAt = performance.now();
      const scope = { kind: { case: 'tenant', value: 'idle' } } as const;
      const { halt } = await client.control.halt({
        requestId: newId('req'),
        scope,
        reason: 'Load.',
      });
      answered.push(performance.now() - startedAt);
      await client.control.resume({ requestId: newId('req'), haltId: halt?.haltId ?? '' });
      await pause(250);
    } while (!isOver);
  };
  const ended = repeat();
  return {
    async end() {
      isOver = true;
      await ended;
      return answered;
    },
  };
}

function quantileOf(times: readonly number[], part: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

function p50AndP99(times: readonly number[]): string {
  return `${quantileOf(times, 0.5).toFixed(0)}, ${quantileOf(times, 0.99).toFixed(0)}`;
}
