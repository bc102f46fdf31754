import {
  type BaselineJob,
  StepBaseline,
  type StepSpeed,
} from '../load/steps/baseline/step-baseline.ts';
import { stepCounts } from '../load/steps/step-counts.ts';
import { StepsHarness } from '../load/steps/steps-harness.ts';
import type { BenchOptions } from './bench.ts';
import { median, quantileOf } from './measure.ts';

/** The figures of every round, by `<kind> <concurrent runs>`. */
type Speeds = ReadonlyMap<string, readonly StepSpeed[]>;

/** Maximum p50 relative to the echo step. */
const MAX_RATIO = 2;
/** The baselines, in ascending order of work per step. */
const BASELINES = ['bare', 'echo'] as const satisfies readonly BaselineJob['work'][];
const KINDS = [...BASELINES, 'governed'] as const;
/** Number of rounds by number of concurrent runs; the figures of one run at a time decide the verdict and vary most. */
const ROUNDS = { 1: 12, 16: 3, 64: 3 } as const;
const IN_FLIGHT = [1, 16, 64] as const;
/** Steps per run; messages grow with every step, so that all runs must have the same length. */
const STEPS = 16;
/** Sequential runs per round when one run is in flight. */
const RUNS_ALONE = 4;
const BASELINE_MS = 1_000;
/** Steps of each kind before the measurement, so that the code is compiled. */
const WARM_UP_STEPS = 2_000;

/**
 * Measures governed steps (RT-1) of a react agent in an embedded platform, with a model that answers at once
 * and a tool that does nothing, in turns with two baselines in their own process: `echo` exchanges the
 * messages of a step with handlers that do nothing and commits as often; `bare` makes as many small RPCs and
 * commits. Prints the figures and returns whether the p50 of one run at a time is at most {@link MAX_RATIO}
 * times that of `echo`.
 */
export async function benchSteps({ profileDir }: BenchOptions): Promise<boolean> {
  const stack = new AsyncDisposableStack();
  try {
    await printCounts();
    const flags = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
    const harness = await StepsHarness.start({ counts: [STEPS], flags });
    stack.defer(() => harness.close());
    const baseline = await StepBaseline.start({ folder: harness.dataDir, limit: STEPS });
    stack.defer(() => baseline.close());
    await warmUp(harness, baseline);
    const speeds = new Map<string, StepSpeed[]>();
    const add = (kind: string, inFlight: number, speed: StepSpeed): void => {
      const key = `${kind} ${inFlight}`;
      speeds.set(key, [...(speeds.get(key) ?? []), speed]);
    };
    // One run at a time is measured last, when the code of both sides is compiled.
    for (const inFlight of IN_FLIGHT.toReversed()) {
      for (let round = 0; round < ROUNDS[inFlight]; round += 1) {
        add('governed', inFlight, await governed(harness, inFlight));
        for (const work of BASELINES) {
          add(work, inFlight, await baseline.measure({ work, inFlight, forMs: BASELINE_MS }));
        }
      }
    }
    const commit = await baseline.measure({ work: 'commit', inFlight: 1, forMs: BASELINE_MS });
    console.log(`commit: p50 ${commit.p50Ms.toFixed(2)} ms`);
    printTable(speeds);
    return verdict(speeds);
  } finally {
    await stack.disposeAsync();
  }
}

async function printCounts(): Promise<void> {
  const { commits, hops, modelRequests } = await stepCounts(10, 40);
  for (const [operation, perStep] of Object.entries(commits)) {
    console.log(`commits per step: ${perStep.toFixed(2)} ${operation}`);
  }
  for (const [rpc, perStep] of Object.entries(hops)) {
    console.log(`RPCs per step: ${perStep.toFixed(2)} ${rpc}`);
  }
  console.log(`model requests per step: ${modelRequests.toFixed(2)}`);
}

async function warmUp(harness: StepsHarness, baseline: StepBaseline): Promise<void> {
  for (let steps = 0; steps < WARM_UP_STEPS; steps += 16 * STEPS) await governed(harness, 16);
  for (const work of BASELINES) {
    for (let steps = 0; steps < WARM_UP_STEPS; ) {
      steps += (await baseline.measure({ work, inFlight: 16, forMs: 500 })).operations;
    }
  }
}

/** Measures concurrent runs; a step lasts from one model request of a run to the next. */
async function governed(harness: StepsHarness, runs: number): Promise<StepSpeed> {
  const before = await harness.counters();
  const askedAt = new Map<string, number>();
  const durations: number[] = [];
  let first = Number.POSITIVE_INFINITY;
  let last = 0;
  harness.model.onRequest = (_limit, next, goal) => {
    const now = performance.now();
    // Skips the first model request of a run, which follows the start of the run instead of a step.
    if (next > 1) durations.push(now - (askedAt.get(goal) ?? now));
    askedAt.set(goal, now);
    first = Math.min(first, now);
    last = now;
  };
  const rounds = runs === 1 ? RUNS_ALONE : 1;
  for (let round = 0; round < rounds; round += 1) {
    await Promise.all(
      Array.from({ length: runs }, (_, run) =>
        harness.count(STEPS, `run ${run} of round ${round}`),
      ),
    );
  }
  const after = await harness.counters();
  // The baselines send requests to the same model, which are not measured here.
  harness.model.onRequest = () => undefined;
  durations.sort((a, b) => a - b);
  return {
    operations: durations.length,
    // Includes starting and ending the runs.
    cpuMs: (after.cpuMs - before.cpuMs) / (rounds * runs * STEPS),
    perSecond: durations.length / ((last - first) / 1_000),
    p50Ms: quantileOf(durations, 0.5),
    p99Ms: quantileOf(durations, 0.99),
  };
}

function printTable(speeds: Speeds): void {
  console.log('step      runs  steps/s   p50 ms   p99 ms   cpu ms');
  for (const inFlight of IN_FLIGHT) {
    for (const kind of KINDS) {
      const rounds = speeds.get(`${kind} ${inFlight}`) ?? [];
      const columns = (['perSecond', 'p50Ms', 'p99Ms', 'cpuMs'] as const).map((figure) =>
        median(rounds.map((speed) => speed[figure]))
          .toFixed(figure === 'perSecond' ? 0 : 2)
          .padStart(7),
      );
      console.log([kind.padEnd(8), String(inFlight).padStart(4), ...columns].join('  '));
    }
  }
}

function verdict(speeds: Speeds): boolean {
  const [alone, ...crowded] = IN_FLIGHT.map((inFlight) => ({
    inFlight,
    echo: ratio(speeds, 'echo', inFlight),
    bare: ratio(speeds, 'bare', inFlight),
  }));
  const isEnough = alone !== undefined && alone.echo <= MAX_RATIO;
  const others = crowded.map(
    ({ inFlight, echo, bare }) =>
      `${echo.toFixed(2)} (${bare.toFixed(2)}) times at ${inFlight} runs`,
  );
  console.log(
    `${isEnough ? 'PASS' : 'FAIL'}: a governed step takes ${alone?.echo.toFixed(2)} times the p50 of echo (maximum ${MAX_RATIO}) and ${alone?.bare.toFixed(2)} times that of bare; ${others.join(', ')}.`,
  );
  return isEnough;
}

/** Median over the rounds of the ratio between the p50 of governed and baseline steps. */
function ratio(speeds: Speeds, baseline: (typeof BASELINES)[number], inFlight: number): number {
  const below = speeds.get(`${baseline} ${inFlight}`) ?? [];
  return median(
    (speeds.get(`governed ${inFlight}`) ?? []).map(
      ({ p50Ms }, round) => p50Ms / (below[round]?.p50Ms ?? Number.NaN),
    ),
  );
}
