import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { COMPILE_CACHE } from '../load/program.ts';
import { stepCounts } from '../load/steps/step-counts.ts';
import { StepsStage } from '../load/steps/steps-stage.ts';
import type { BenchOptions } from './bench.ts';
import { median, quantileOf, type Speed } from './measure.ts';

/** How fast steps were. */
interface StepSpeed extends Speed {
  /** Time on a processor per step, milliseconds: steadier than the others where the machine is shared. */
  readonly cpuMs: number;
}

/** Of the floor's p50. */
const WANTED = 2;
/** Runs at the same time. */
const IN_FLIGHT = [1, 16, 64] as const;
/** Of each run: what a step says grows with those before it, so that all runs must be of one length. */
const STEPS = 16;
/** One after the other, where there is one run at a time. */
const RUNS_ALONE = 8;
const ROUNDS = 3;
const FLOOR_MS = 1_000;
/** Before anything is measured, of either side: the compiler is done with both of them then. */
const WARM_UP_STEPS = 2_000;

/**
 * Measures governed steps (RT-1): a react agent with a model that answers at once and a tool that does
 * nothing, in an embedded platform, beside the bare hops and commits of a step, each in a process of its
 * own and in turns. Prints the figures and whether the p50 of one run at a time is within {@link WANTED}
 * times the floor's; resolves with that.
 */
export async function benchSteps({ profileDir }: BenchOptions): Promise<boolean> {
  const stack = new AsyncDisposableStack();
  try {
    await printCounts();
    const flags = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
    const stage = await StepsStage.start({ counts: [STEPS], flags });
    stack.defer(() => stage.close());
    const floor = await startFloor(stage.dataDir);
    stack.defer(() => end(floor));
    for (let steps = 0; steps < WARM_UP_STEPS; steps += 16 * STEPS) await governed(stage, 16);
    for (let steps = 0; steps < WARM_UP_STEPS; ) steps += (await bare(floor, 16, 500)).operations;
    const speeds = new Map<string, StepSpeed[]>();
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const inFlight of IN_FLIGHT) {
        add(speeds, `governed ${inFlight}`, await governed(stage, inFlight));
        add(speeds, `bare ${inFlight}`, await bare(floor, inFlight, FLOOR_MS));
      }
    }
    const commit = await bare(floor, 1, FLOOR_MS, 'commit');
    console.log(`a commit alone: p50 ${commit.p50Ms.toFixed(2)} ms, most of it the disk's`);
    console.log('step      runs  steps/s   p50 ms   p99 ms   cpu ms');
    for (const inFlight of IN_FLIGHT) {
      for (const kind of ['bare', 'governed']) {
        const of = speeds.get(`${kind} ${inFlight}`) ?? [];
        const columns = (['perSecond', 'p50Ms', 'p99Ms', 'cpuMs'] as const).map((figure) =>
          median(of.map((speed) => speed[figure]))
            .toFixed(figure === 'perSecond' ? 0 : 2)
            .padStart(7),
        );
        console.log([kind.padEnd(8), String(inFlight).padStart(4), ...columns].join('  '));
      }
    }
    const [alone = Number.NaN, ...crowded] = IN_FLIGHT.map((inFlight) => ratio(speeds, inFlight));
    const isEnough = alone <= WANTED;
    const others = crowded.map((times) => times.toFixed(2)).join(' and ');
    console.log(
      `${isEnough ? 'PASS' : 'FAIL'}: a governed step takes ${alone.toFixed(2)} times the p50 of its hops and commits; wanted are at most ${WANTED}. At 16 and 64 runs it is ${others} times.`,
    );
    return isEnough;
  } finally {
    await stack.disposeAsync();
  }
}

async function printCounts(): Promise<void> {
  const { commits, hops } = await stepCounts(10, 40);
  console.log(`commits per step: ${commits.toFixed(2)}`);
  for (const [rpc, perStep] of Object.entries(hops)) {
    console.log(`hops per step: ${perStep.toFixed(2)} ${rpc}`);
  }
}

/** So many runs at the same time; a step is what lies between two questions of one run. */
async function governed(stage: StepsStage, runs: number): Promise<StepSpeed> {
  const before = await stage.figures();
  const askedAt = new Map<string, number>();
  const durations: number[] = [];
  let first = Number.POSITIVE_INFINITY;
  let last = 0;
  stage.model.asked = (_limit, next, who) => {
    const now = performance.now();
    // A run's first question waits for its start, not for a step.
    if (next > 1) durations.push(now - (askedAt.get(who) ?? now));
    askedAt.set(who, now);
    first = Math.min(first, now);
    last = now;
  };
  const rounds = runs === 1 ? RUNS_ALONE : 1;
  for (let round = 0; round < rounds; round += 1) {
    await Promise.all(
      Array.from({ length: runs }, (_, run) => stage.count(STEPS, `run ${run} of round ${round}`)),
    );
  }
  const after = await stage.figures();
  durations.sort((a, b) => a - b);
  return {
    operations: durations.length,
    // What starting and ending the runs takes is in it.
    cpuMs: (after.cpuMs - before.cpuMs) / (rounds * runs * STEPS),
    perSecond: durations.length / ((last - first) / 1_000),
    p50Ms: quantileOf(durations, 0.5),
    p99Ms: quantileOf(durations, 0.99),
  };
}

async function startFloor(folder: string): Promise<ChildProcess> {
  const program = fileURLToPath(new URL('../load/steps/floor-program.ts', import.meta.url));
  const floor = fork(program, {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, FLOOR_FOLDER: folder },
  });
  await once(floor, 'message');
  return floor;
}

async function bare(
  floor: ChildProcess,
  inFlight: number,
  forMs: number,
  work: 'step' | 'commit' = 'step',
): Promise<StepSpeed> {
  const answered = once(floor, 'message');
  floor.send({ work, inFlight, forMs });
  const [speed] = (await answered) as [StepSpeed];
  return speed;
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

function add(speeds: Map<string, StepSpeed[]>, key: string, speed: StepSpeed): void {
  speeds.set(key, [...(speeds.get(key) ?? []), speed]);
}

function ratio(speeds: ReadonlyMap<string, readonly Speed[]>, inFlight: number): number {
  const floor = speeds.get(`bare ${inFlight}`) ?? [];
  return median(
    (speeds.get(`governed ${inFlight}`) ?? []).map(
      ({ p50Ms }, round) => p50Ms / (floor[round]?.p50Ms ?? Number.NaN),
    ),
  );
}
