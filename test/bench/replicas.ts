import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import type { ServiceName } from '@writ/identity';
import { type DistributedPlatform, startDistributedPlatform } from '@writ/testing/distributed';
import { untilAdmitted } from '../load/admitted.ts';
import { twoStepExample } from '../load/two-step-example.ts';
import type { BenchOptions } from './bench.ts';
import { median } from './measure.ts';

const SERVICES = [
  'spawn-budget',
  'execution-meter',
  'tool-gateway',
  'supervisor',
  'agent-worker',
] as const satisfies readonly ServiceName[];
const DEFAULT_ROUNDS = 5;
const DEFAULT_SECONDS = 8;
/**
 * Warm-up time, ms: a run calls several thousand functions only a few times each, so compiling all of them takes many
 * runs.
 */
const WARM_UP_MS = 60_000;
const IN_FLIGHT = 16;
/** Minimum throughput with two replicas, relative to the throughput with one replica. */
const MIN_RATIO = 0.97;
const POLL_MS = 20;

/** The throughput with one and with two replicas of a service, in runs per second. */
interface ServiceFigures {
  readonly service: ServiceName;
  /** By round. */
  readonly one: readonly number[];
  readonly two: readonly number[];
  /** Median over the rounds of the throughput with two replicas relative to the throughput with one replica. */
  readonly ratio: number;
}

/**
 * Measures runs of two steps on distributed platforms with one and with two replicas of each service, one service after
 * the other, in alternating rounds. Prints a table and writes `replicas.json`. Returns whether, for each service, the
 * throughput with two replicas is at least {@link MIN_RATIO} times that with one.
 */
export async function benchReplicas(options: BenchOptions): Promise<boolean> {
  const { rounds = DEFAULT_ROUNDS, seconds = DEFAULT_SECONDS, outDir = 'dist/bench' } = options;
  const figures: ServiceFigures[] = [];
  for (const service of SERVICES) {
    const measured = await secondReplica(service, rounds, seconds * 1_000);
    figures.push(measured);
    const medians = [median(measured.one), median(measured.two)].map((each) => each.toFixed(1));
    console.log(
      `${service}: ${medians[0]} runs/s with one replica, ${medians[1]} with two, ratio ${measured.ratio.toFixed(2)}`,
    );
  }
  mkdirSync(outDir, { recursive: true });
  const report = { measuredAt: new Date().toISOString(), cores: availableParallelism(), figures };
  writeFileSync(join(outDir, 'replicas.json'), `${JSON.stringify(report, null, 2)}\n`);
  const slower = figures.filter(({ ratio }) => ratio < MIN_RATIO).map(({ service }) => service);
  console.log(
    slower.length === 0
      ? `PASS: no second replica lowers the throughput below ${MIN_RATIO} times that of one replica.`
      : `FAIL: a second replica lowers the throughput below ${MIN_RATIO} times that of one replica: ${slower.join(', ')}.`,
  );
  return slower.length === 0;
}

/** Measures two warmed-up platforms in alternating rounds: one with one replica of the service, one with two. */
async function secondReplica(
  service: ServiceName,
  rounds: number,
  forMs: number,
): Promise<ServiceFigures> {
  const stack = new AsyncDisposableStack();
  const start = async (replicas: number): Promise<DistributedPlatform> => {
    const counts = SERVICES.map((each) => [each, each === service ? replicas : 1]);
    const platform = await startDistributedPlatform({
      example: twoStepExample(),
      replicas: Object.fromEntries(counts),
    });
    stack.defer(() => platform.close());
    return platform;
  };
  try {
    const single = await start(1);
    const double = await start(2);
    for (const platform of [single, double]) await measure(platform, WARM_UP_MS);
    const one: number[] = [];
    const two: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      one.push(await measure(single, forMs));
      two.push(await measure(double, forMs));
    }
    const ratios = two.map((figure, round) => figure / (one[round] ?? Number.NaN));
    return { service, one, two, ratio: median(ratios) };
  } finally {
    await stack.disposeAsync();
  }
}

let started = 0;

/** Runs per second, with a constant number of runs in flight. */
async function measure({ client }: DistributedPlatform, forMs: number): Promise<number> {
  const from = performance.now();
  let ended = 0;
  const driveRuns = async (): Promise<void> => {
    while (performance.now() - from < forMs) {
      started += 1;
      const start = { requestId: `bench-${started}`, agent: 'refund-worker', goal: 'Do it.' };
      const { run } = await untilAdmitted(() => client.runs.startRun(start));
      const runId = run?.runId ?? '';
      let state = run?.state ?? RunState.PENDING;
      while (state <= RunState.ENDING) {
        await pause(POLL_MS);
        state = (await client.runs.getRun({ runId })).run?.state ?? state;
      }
      if (state !== RunState.COMPLETED) {
        const { run: failed } = await client.runs.getRun({ runId });
        throw new Error(`Run ${runId} ended with ${failed?.result?.stopReason}.`);
      }
      ended += 1;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, driveRuns));
  return ended / ((performance.now() - from) / 1_000);
}
