import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { type CountedCost, completeRun, countCost, startCounted } from '../load/run-cost.ts';
import type { BenchOptions } from './bench.ts';
import { median } from './measure.ts';
import { PEERS } from './peers/catalog.ts';
import { type Peer, startPeer } from './peers/peer-process.ts';
import type { PeerSpeed } from './peers/serve-peer.ts';
import { startSurroundings } from './peers/surroundings.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const DEFAULT_ROUNDS = 3;
const DEFAULT_SECONDS = 5;
const WARM_UP_MS = 10_000;
const ALONE = 1;
const CROWDED = 16;
const SIDES = ['direct', 'writ'] as const;
/** Maxima of the counts of a run. */
const MAX_COUNTS = { commits: 14, statements: 130, signatures: 9 } as const;
/** Maximum p50 of one run at a time relative to the direct calls. */
const MAX_P50_RATIO = 6;
/** Maximum time per run at {@link CROWDED} in flight relative to the direct calls. */
const MAX_TIME_RATIO = 12;
/** Maximum processor time per run at {@link CROWDED} in flight relative to the direct calls. */
const MAX_CPU_RATIO = 11;

/** The speeds of one round, by runs in flight. */
type Round = Readonly<Record<'alone' | 'crowded', Record<(typeof SIDES)[number], PeerSpeed>>>;

/** The counts of the work of a run, and the times of every round. */
export interface TwoStepFigures {
  readonly cost: CountedCost;
  readonly rounds: readonly Round[];
}

/**
 * Measures a two-step run (model, tool that does nothing, model, answer) on the embedded platform and the same two
 * model calls made directly (CO-1): counts the work of a run, and measures the times of both in alternating rounds,
 * with the model in a separate process. Prints tables and writes `two-step.json`. Returns whether the counts and the
 * ratios are within their maxima.
 */
export async function benchTwoStep(options: BenchOptions): Promise<boolean> {
  const { rounds = DEFAULT_ROUNDS, seconds = DEFAULT_SECONDS, outDir = 'dist/bench' } = options;
  const load = loadavg();
  const figures = {
    cost: await countTwoStep({ runs: 20, warmUp: 5 }),
    rounds: await measureTwoStep({ rounds, seconds, warmUpMs: WARM_UP_MS }),
  };
  mkdirSync(outDir, { recursive: true });
  const measuredAt = new Date().toISOString();
  const report = { measuredAt, cores: availableParallelism(), load, ...figures };
  writeFileSync(join(outDir, 'two-step.json'), `${JSON.stringify(report, null, 2)}\n`);
  printTable(figures);
  return verdict(figures);
}

/** Counts commits, statements, calls and signatures of a run. */
async function countTwoStep(plan: {
  readonly runs: number;
  readonly warmUp: number;
}): Promise<CountedCost> {
  const harness = await startCounted({ counts: [1] });
  try {
    return await countCost(harness, plan, async () => {
      const stopReason = await completeRun(harness, 'counter-1');
      if (stopReason !== 'success') throw new Error(`A run ended with ${stopReason}.`);
    });
  } finally {
    await harness.close();
  }
}

/** Measures runs and direct calls in turns, alone and {@link CROWDED} at once. */
export async function measureTwoStep(plan: {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpMs: number;
}): Promise<Round[]> {
  const stack = new AsyncDisposableStack();
  try {
    const surroundings = await startSurroundings(ROOT);
    stack.defer(() => surroundings.close());
    const peers = new Map<string, Peer>();
    for (const entry of PEERS.filter(({ id }) => SIDES.some((side) => side === id))) {
      const peer = await startPeer(entry, surroundings);
      stack.defer(() => peer.close());
      await peer.measure(CROWDED, plan.warmUpMs);
      peers.set(entry.id, peer);
    }
    const measureBoth = async (inFlight: number) => ({
      direct: await speedOf(peers.get('direct'), inFlight, plan.seconds),
      writ: await speedOf(peers.get('writ'), inFlight, plan.seconds),
    });
    const rounds: Round[] = [];
    for (let round = 0; round < plan.rounds; round += 1) {
      rounds.push({ alone: await measureBoth(ALONE), crowded: await measureBoth(CROWDED) });
    }
    return rounds;
  } finally {
    await stack.disposeAsync();
  }
}

async function speedOf(
  peer: Peer | undefined,
  inFlight: number,
  seconds: number,
): Promise<PeerSpeed> {
  if (peer === undefined) throw new Error('A compared program is missing from the catalog.');
  return await peer.measure(inFlight, seconds * 1_000);
}

function printTable({ cost: { least }, rounds }: TwoStepFigures): void {
  const { commits, statements, calls, signs, verifies } = least;
  console.log(
    `per run: ${commits} commits, ${statements} statements, ${calls} calls between services, ${signs} signatures made and ${verifies} verified`,
  );
  console.log('| in flight | measure | direct | Writ | ratio |');
  console.log('|---|---|---|---|---|');
  for (const [load, inFlight] of [
    ['alone', ALONE],
    ['crowded', CROWDED],
  ] as const) {
    for (const [measure, figure] of [
      ['p50, ms', 'p50Ms'],
      ['runs/s', 'perSecond'],
      ['processor, ms a run', 'cpuMs'],
    ] as const) {
      const of = (side: (typeof SIDES)[number]) =>
        median(rounds.map((round) => round[load][side][figure])).toFixed(2);
      const ratio = ratioOf(rounds, load, figure).toFixed(2);
      console.log(`| ${[inFlight, measure, of('direct'), of('writ'), ratio].join(' | ')} |`);
    }
  }
}

/**
 * Returns the median over the rounds of the ratio between a figure of Writ and that of the direct calls in the same
 * round.
 */
function ratioOf(
  rounds: readonly Round[],
  load: keyof Round,
  figure: 'p50Ms' | 'perSecond' | 'cpuMs',
): number {
  return median(
    rounds.map(({ [load]: { direct, writ } }) =>
      figure === 'perSecond' ? direct.perSecond / writ.perSecond : writ[figure] / direct[figure],
    ),
  );
}

function verdict({ cost: { least }, rounds }: TwoStepFigures): boolean {
  const { commits, statements, signs, verifies } = least;
  const measured = [
    ['commits', commits, MAX_COUNTS.commits],
    ['statements', statements, MAX_COUNTS.statements],
    ['signatures made or verified', signs + verifies, MAX_COUNTS.signatures],
    [
      'times the p50 of direct calls, one at a time',
      ratioOf(rounds, 'alone', 'p50Ms'),
      MAX_P50_RATIO,
    ],
    [
      `times the time per run of direct calls, ${CROWDED} in flight`,
      ratioOf(rounds, 'crowded', 'perSecond'),
      MAX_TIME_RATIO,
    ],
    [
      `times the processor time of direct calls, ${CROWDED} in flight`,
      ratioOf(rounds, 'crowded', 'cpuMs'),
      MAX_CPU_RATIO,
    ],
  ] as const;
  const isEnough = measured.every(([, figure, max]) => figure <= max);
  const listed = measured.map(
    ([name, figure, max]) => `${Number(figure.toFixed(2))} ${name} (maximum ${max})`,
  );
  console.log(`${isEnough ? 'PASS' : 'FAIL'}: a run takes ${listed.join(', ')}.`);
  return isEnough;
}
