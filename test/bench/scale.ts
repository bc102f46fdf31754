import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '@writ/testing/distributed';
import { startDedicatedPostgres } from '@writ/testing/postgres';
import { seeded } from '@writ/testing/random';
import type { BenchOptions } from './bench.ts';
import { median } from './measure.ts';
import { whileCoresAreBusy } from './scale/busy-cores.ts';
import { type Installation, simulate, type WriteTimes } from './scale/simulation.ts';
import { type MeasuredUse, serverUse, writeTimes } from './scale/write-times.ts';
import type { MeasureRequest } from './writers/process.ts';
import { machineName, WriterProcess } from './writers.ts';

const WRITERS = 16;
const MOST_PROCESSES = 4;
const SESSIONS = 4;
const DEFAULT_ROUNDS = 3;
const DEFAULT_SECONDS = 3;
/**
 * Warm-up time in which each process compiles its code; before that, a transaction takes twice as much processor time.
 */
const WARM_UP_MS = 12_000;
/** Maximum difference between a prediction and its measurement. */
const MAX_ERROR = 0.25;

/** Measured and predicted throughput of a number of processes, transactions per second. */
interface Prediction {
  readonly processes: number;
  readonly measured: number;
  readonly predicted: number;
}

/**
 * Times of a transaction in one process and in the server: on dedicated cores (`own`), and on cores that other programs
 * use as well (`shared`).
 */
interface MeasuredTimes {
  readonly own: WriteTimes;
  readonly shared: WriteTimes;
}

/**
 * Measures the processor and log-flush times of a transaction in one writing process and its PostgreSQL server, on idle
 * cores and on cores that other programs use as well, where cache misses and context switches slow it down. Simulates 2
 * and 4 processes on these cores with the times on shared cores, and compares the predictions with measurements. Then
 * simulates larger installations, whose processes have dedicated cores, with the times on idle cores. Prints the tables
 * and writes `scale.json`. Returns whether each prediction is within {@link MAX_ERROR} of its measurement (SYS-5).
 */
export async function benchScale(options: BenchOptions): Promise<boolean> {
  const { rounds = DEFAULT_ROUNDS, seconds = DEFAULT_SECONDS, outDir = 'dist/bench' } = options;
  const stack = new AsyncDisposableStack();
  try {
    const [port = 0] = await freePorts(1);
    const settings = { fsync: 'on', full_page_writes: 'on', track_wal_io_timing: 'on' };
    const server = await startDedicatedPostgres(port, undefined, settings);
    stack.defer(() => server.stop());
    const processes = Array.from({ length: MOST_PROCESSES }, () => new WriterProcess());
    for (const process of processes) stack.defer(() => process.stop());
    const measure = measureOf(processes, server.url());
    await measure(MOST_PROCESSES, WRITERS, WARM_UP_MS);
    const found: { times: MeasuredTimes; predictions: readonly Prediction[] }[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const measureTimes = async () =>
        writeTimes(
          await measure(1, 1, seconds * 1_000),
          await measure(1, WRITERS, seconds * 1_000),
        );
      const times = { own: await measureTimes(), shared: await whileCoresAreBusy(measureTimes) };
      const predictions: Prediction[] = [];
      for (const used of [2, MOST_PROCESSES]) {
        const { perSecond } = await measure(used, WRITERS, seconds * 1_000);
        predictions.push({
          processes: used,
          measured: perSecond,
          predicted: predict(times.shared, used),
        });
      }
      found.push({ times, predictions });
    }
    const times: MeasuredTimes = {
      own: middleOf(found.map((each) => each.times.own)),
      shared: middleOf(found.map((each) => each.times.shared)),
    };
    const predictions = [2, MOST_PROCESSES].map((used, index) => ({
      processes: used,
      measured: median(found.map((each) => each.predictions[index]?.measured ?? Number.NaN)),
      predicted: median(found.map((each) => each.predictions[index]?.predicted ?? Number.NaN)),
    }));
    const larger = simulateLarger(times.own);
    print(times, predictions, larger);
    mkdirSync(outDir, { recursive: true });
    const report = { measuredAt: new Date().toISOString(), machine: machineName(), times };
    const json = JSON.stringify({ ...report, predictions, larger }, null, 2);
    writeFileSync(join(outDir, 'scale.json'), `${json}\n`);
    return verdict(predictions);
  } finally {
    await stack.disposeAsync();
  }
}

type Measured = MeasuredUse & { readonly perSecond: number };

/**
 * Returns a function that measures writers of spawn-budget in a number of processes, and the resources that the
 * processes and the server use.
 */
function measureOf(all: readonly WriterProcess[], url: string) {
  return async (processes: number, writers: number, forMs: number): Promise<Measured> => {
    const request: MeasureRequest = {
      work: 'spawn-budget',
      location: { dialect: 'postgres', url, schema: 'spawn_budget', oneAtATime: false },
      writers: writers / processes,
      forMs,
    };
    const before = await serverUse(url);
    const answers = await Promise.all(
      all.slice(0, processes).map((process) => process.measure(request)),
    );
    const after = await serverUse(url);
    const sum = (figure: 'perSecond' | 'transactions' | 'commits' | 'processorMs') =>
      answers.reduce((total, answer) => total + answer[figure], 0);
    return {
      perSecond: sum('perSecond'),
      writing: {
        transactions: sum('transactions'),
        commits: sum('commits'),
        processorMs: sum('processorMs'),
      },
      server: {
        processorMs: after.processorMs - before.processorMs,
        flushes: after.flushes - before.flushes,
        flushMs: after.flushMs - before.flushMs,
      },
    };
  };
}

/** Predicts the throughput of this machine, where the processes and the server share the cores. */
function predict(times: WriteTimes, processes: number): number {
  const installation: Installation = {
    times,
    processes,
    sessions: SESSIONS,
    cores: { shared: availableParallelism() },
    writers: WRITERS,
    thinkMs: 0,
    transactionsPerStep: 2,
  };
  const random = seeded(processes);
  return simulate(installation, { forMs: 5_000, warmUpMs: 1_000, random }).perSecond;
}

function middleOf(times: readonly WriteTimes[]): WriteTimes {
  const middle = (figure: (each: WriteTimes) => number) => median(times.map(figure));
  return {
    process: {
      perTransaction: middle(({ process }) => process.perTransaction),
      perCommit: middle(({ process }) => process.perCommit),
    },
    server: {
      perTransaction: middle(({ server }) => server.perTransaction),
      perCommit: middle(({ server }) => server.perCommit),
    },
    flush: middle(({ flush }) => flush),
  };
}

/** The figures of a simulated cell: processes with a core each, and their database server with cores of its own. */
interface LargerCell {
  readonly what: string;
  readonly agents: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly othersP50: number;
}

/**
 * A cell, which shares nothing with other cells. An agent makes about six transactions per step in all services
 * together; its model takes two seconds.
 */
const CELL = {
  processes: 4,
  sessions: SESSIONS,
  cores: { server: 8 },
  thinkMs: 2_000,
  transactionsPerStep: 6,
};
/** Number of agents of a cell in the fault scenarios; 1,000 cells of this size have a million agents. */
const AGENTS = 1_000;

function simulateLarger(times: WriteTimes): LargerCell[] {
  const simulated = (what: string, changes: Partial<Installation>): LargerCell => {
    const installation = { ...CELL, times, writers: AGENTS, ...changes };
    const figures = simulate(installation, { forMs: 10_000, warmUpMs: 5_000, random: seeded(1) });
    return { what, agents: installation.writers, ...figures };
  };
  const failure = { processes: 1, at: 8_000, takeOverMs: 3_000 };
  return [
    ...[250, 500, AGENTS, 2_000, 4_000].map((writers) =>
      simulated('a cell of 4 processes', { writers }),
    ),
    simulated('a cell of 8 processes', { processes: 8, writers: 4_000 }),
    simulated('a hot tenant with a tenth of the agents', { serialized: AGENTS / 10 }),
    simulated('a zone with a quarter of the processes fails', { failure }),
  ];
}

function print(
  { own, shared }: MeasuredTimes,
  predictions: readonly Prediction[],
  larger: readonly LargerCell[],
): void {
  console.log(machineName());
  console.log('| ms, with own and with shared cores | of a transaction | of a commit |');
  console.log('|---|---|---|');
  for (const part of ['process', 'server'] as const) {
    const cells = (['perTransaction', 'perCommit'] as const).map(
      (figure) => `${own[part][figure].toFixed(3)}, ${shared[part][figure].toFixed(3)}`,
    );
    console.log(`| ${[part, ...cells].join(' | ')} |`);
  }
  console.log(`| flush of the log | | ${own.flush.toFixed(3)}, ${shared.flush.toFixed(3)} |`);
  console.log('\n| processes | measured, transactions/s | predicted | difference |');
  console.log('|---|---|---|---|');
  for (const { processes, measured, predicted } of predictions) {
    const difference = `${(100 * errorOf({ processes, measured, predicted })).toFixed(0)} %`;
    console.log(
      `| ${[processes, measured.toFixed(0), predicted.toFixed(0), difference].join(' | ')} |`,
    );
  }
  console.log('\n| simulated | agents | transactions/s | step p50, ms | p99 | p50 of the others |');
  console.log('|---|---|---|---|---|---|');
  for (const { what, agents, ...figures } of larger) {
    const { perSecond, p50, p99, othersP50 } = figures;
    const cells = [perSecond, p50, p99, othersP50].map((figure) => figure.toFixed(0));
    console.log(`| ${[what, agents, ...cells].join(' | ')} |`);
  }
}

function errorOf({ measured, predicted }: Prediction): number {
  return predicted / measured - 1;
}

function verdict(predictions: readonly Prediction[]): boolean {
  const isClose = predictions.every((each) => Math.abs(errorOf(each)) <= MAX_ERROR);
  console.log(
    `${isClose ? 'PASS' : 'FAIL'}: the predictions for 2 and ${MOST_PROCESSES} processes are ${isClose ? '' : 'not '}within ${100 * MAX_ERROR} % of the measurements.`,
  );
  return isClose;
}
