import { type FloorJob, StepFloor, type StepSpeed } from '../load/steps/floor/step-floor.ts';
import { stepCounts } from '../load/steps/step-counts.ts';
import { StepsStage } from '../load/steps/steps-stage.ts';
import type { BenchOptions } from './bench.ts';
import { median, quantileOf } from './measure.ts';

/** The figures of every round, by `<kind> <runs at the same time>`. */
type Speeds = ReadonlyMap<string, readonly StepSpeed[]>;

/** Of the echoed step's p50. */
const WANTED = 2;
/** From the least to the most that is done in a step. */
const FLOORS = ['bare', 'echoed'] as const satisfies readonly FloorJob['work'][];
const KINDS = [...FLOORS, 'governed'] as const;
/** Runs at the same time, and how often that is measured: one alone is what counts, and the least steady. */
const ROUNDS = { 1: 12, 16: 3, 64: 3 } as const;
const IN_FLIGHT = [1, 16, 64] as const;
/** Of each run: what a step says grows with those before it, so that all runs must be of one length. */
const STEPS = 16;
/** One after the other, where there is one run at a time. */
const RUNS_ALONE = 4;
const FLOOR_MS = 1_000;
/** Before anything is measured, of each kind: the compiler is done with all of them then. */
const WARM_UP_STEPS = 2_000;

/**
 * Measures governed steps (RT-1): a react agent with a model that answers at once and a tool that does
 * nothing, in an embedded platform, beside two floors in a process of their own, all in turns. The floor
 * that counts is the step's own exchanges, answered by handlers that do nothing, with as many commits
 * (`echoed`); the other has only as many hops, of a few bytes, and commits (`bare`). Prints the figures
 * and whether the p50 of one run at a time is within {@link WANTED} times that of echoed steps; resolves
 * with that.
 */
export async function benchSteps({ profileDir }: BenchOptions): Promise<boolean> {
  const stack = new AsyncDisposableStack();
  try {
    await printCounts();
    const flags = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
    const stage = await StepsStage.start({ counts: [STEPS], flags });
    stack.defer(() => stage.close());
    const floor = await StepFloor.start({ folder: stage.dataDir, limit: STEPS });
    stack.defer(() => floor.close());
    await warmUp(stage, floor);
    const speeds = new Map<string, StepSpeed[]>();
    const add = (kind: string, inFlight: number, speed: StepSpeed): void => {
      const key = `${kind} ${inFlight}`;
      speeds.set(key, [...(speeds.get(key) ?? []), speed]);
    };
    // One run alone comes last: what it runs through is compiled best by then, on either side.
    for (const inFlight of IN_FLIGHT.toReversed()) {
      for (let round = 0; round < ROUNDS[inFlight]; round += 1) {
        add('governed', inFlight, await governed(stage, inFlight));
        for (const work of FLOORS) {
          add(work, inFlight, await floor.measure({ work, inFlight, forMs: FLOOR_MS }));
        }
      }
    }
    const commit = await floor.measure({ work: 'commit', inFlight: 1, forMs: FLOOR_MS });
    console.log(`a commit alone: p50 ${commit.p50Ms.toFixed(2)} ms, most of it the disk's`);
    printTable(speeds);
    return verdict(speeds);
  } finally {
    await stack.disposeAsync();
  }
}

async function printCounts(): Promise<void> {
  const { commits, hops, questions } = await stepCounts(10, 40);
  console.log(`commits per step: ${commits.toFixed(2)}`);
  for (const [rpc, perStep] of Object.entries(hops)) {
    console.log(`hops per step: ${perStep.toFixed(2)} ${rpc}`);
  }
  console.log(`hops per step: ${questions.toFixed(2)} request to the model over HTTP`);
}

async function warmUp(stage: StepsStage, floor: StepFloor): Promise<void> {
  for (let steps = 0; steps < WARM_UP_STEPS; steps += 16 * STEPS) await governed(stage, 16);
  for (const work of FLOORS) {
    for (let steps = 0; steps < WARM_UP_STEPS; ) {
      steps += (await floor.measure({ work, inFlight: 16, forMs: 500 })).operations;
    }
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
  // The floors ask the same model.
  stage.model.asked = () => undefined;
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

function printTable(speeds: Speeds): void {
  console.log('step      runs  steps/s   p50 ms   p99 ms   cpu ms');
  for (const inFlight of IN_FLIGHT) {
    for (const kind of KINDS) {
      const of = speeds.get(`${kind} ${inFlight}`) ?? [];
      const columns = (['perSecond', 'p50Ms', 'p99Ms', 'cpuMs'] as const).map((figure) =>
        median(of.map((speed) => speed[figure]))
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
    echoed: ratio(speeds, 'echoed', inFlight),
    bare: ratio(speeds, 'bare', inFlight),
  }));
  const isEnough = alone !== undefined && alone.echoed <= WANTED;
  const others = crowded.map(
    ({ inFlight, echoed, bare }) =>
      `${echoed.toFixed(2)} (${bare.toFixed(2)}) times at ${inFlight} runs`,
  );
  console.log(
    `${isEnough ? 'PASS' : 'FAIL'}: a governed step takes ${alone?.echoed.toFixed(2)} times the p50 of its own exchanges and commits, echoed, of which at most ${WANTED} are wanted (and ${alone?.bare.toFixed(2)} times that of bare ones); ${others.join(', ')}.`,
  );
  return isEnough;
}

/** Median over the rounds of the p50 of governed steps in that of a floor's. */
function ratio(speeds: Speeds, floor: (typeof FLOORS)[number], inFlight: number): number {
  const below = speeds.get(`${floor} ${inFlight}`) ?? [];
  return median(
    (speeds.get(`governed ${inFlight}`) ?? []).map(
      ({ p50Ms }, round) => p50Ms / (below[round]?.p50Ms ?? Number.NaN),
    ),
  );
}
