import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { DistributedPlatform } from '@writ/testing/distributed';
import pg from 'pg';
import { processorMs } from '../load/program.ts';
import type { BenchOptions } from './bench.ts';
import type { PostgresTraffic } from './distributed/count-round-trips.ts';
import { runAll, startCounted, trafficAt, twoSteps } from './distributed/counted-platform.ts';
import { measure, median } from './measure.ts';

const DEFAULT_ROUNDS = 3;
const DEFAULT_SECONDS = 8;
const WARM_UP_MS = 8_000;
const ALONE = 1;
const CROWDED = 16;
/** Maximum transactions and round trips to PostgreSQL of a single run. */
const MAX_TRANSACTIONS = 22;
const MAX_ROUND_TRIPS = 80;
/** Time within which a PostgreSQL backend reports its transactions to pg_stat_database, even if the backend is idle. */
const REPORT_MS = 11_000;
/** Maximum number of kinds of round trips that are listed for a service. */
const LISTED = 12;

/** The traffic of every service at one moment. */
interface Sample {
  readonly at: number;
  /** Transactions of the database, as the server counts them. */
  readonly transactions: number;
  readonly services: Readonly<Record<string, PostgresTraffic>>;
}

/** The traffic of one run, without that of the idle platform. */
export interface RunTraffic {
  readonly inFlight: number;
  readonly runs: number;
  /** Transactions that pg_stat_database reports. */
  readonly transactions: number;
  readonly roundTrips: number;
  readonly services: Readonly<Record<string, PostgresTraffic>>;
}

/** The times of one round. */
interface Round {
  readonly p50AloneMs: number;
  readonly perSecond: number;
  /** Processor time of each service per run at {@link CROWDED} in flight, milliseconds. */
  readonly processorMs: Readonly<Record<string, number>>;
}

/** The result of {@link measureDistributed}. */
export interface DistributedFigures {
  /** Traffic per second without runs. */
  readonly idle: { readonly transactions: number; readonly roundTrips: number };
  readonly traffic: readonly RunTraffic[];
  readonly rounds: readonly Round[];
}

/**
 * Measures two-step runs on one process for each service, with PostgreSQL (fsync) and NATS and without fault proxies
 * (SYS-5). Prints tables and writes `distributed.json`. Returns whether a single run takes at most
 * {@link MAX_TRANSACTIONS} transactions and {@link MAX_ROUND_TRIPS} round trips to PostgreSQL, without those of the
 * idle platform.
 */
export async function benchDistributed(options: BenchOptions): Promise<boolean> {
  const { rounds = DEFAULT_ROUNDS, seconds = DEFAULT_SECONDS, outDir = 'dist/bench' } = options;
  const load = loadavg();
  const figures = await measureDistributed({ rounds, seconds, idleMs: 15_000, runs: 40 });
  print(figures);
  mkdirSync(outDir, { recursive: true });
  const report = {
    measuredAt: new Date().toISOString(),
    cores: availableParallelism(),
    load,
    ...figures,
  };
  writeFileSync(join(outDir, 'distributed.json'), `${JSON.stringify(report, null, 2)}\n`);
  const { transactions = Number.NaN, roundTrips = Number.NaN } = figures.traffic[0] ?? {};
  const isEnough = transactions <= MAX_TRANSACTIONS && roundTrips <= MAX_ROUND_TRIPS;
  console.log(
    `${isEnough ? 'PASS' : 'FAIL'}: a run alone takes ${transactions.toFixed(1)} transactions (maximum ${MAX_TRANSACTIONS}) and ${roundTrips.toFixed(1)} round trips to PostgreSQL (maximum ${MAX_ROUND_TRIPS}).`,
  );
  return isEnough;
}

/** Starts the platform, and measures its traffic and its times. */
async function measureDistributed(plan: {
  readonly rounds: number;
  readonly seconds: number;
  readonly idleMs: number;
  /** Runs whose traffic is counted. */
  readonly runs: number;
}): Promise<DistributedFigures> {
  const stack = new AsyncDisposableStack();
  try {
    const { platform, sockets } = await startCounted(stack);
    const run = () => twoSteps(platform);
    await measure(run, CROWDED, plan.seconds === 0 ? 0 : WARM_UP_MS);
    await pause(REPORT_MS);
    const before = await sample(platform, sockets);
    await pause(plan.idleMs);
    const after = await sample(platform, sockets);
    const traffic: RunTraffic[] = [];
    for (const inFlight of [ALONE, CROWDED]) {
      traffic.push(
        await trafficOf({ platform, sockets, inFlight, runs: plan.runs, idle: [before, after] }),
      );
    }
    const rounds: Round[] = [];
    for (let round = 0; round < plan.rounds; round += 1) {
      rounds.push(await timesOf(platform, plan.seconds * 1_000));
    }
    const forSeconds = (after.at - before.at) / 1_000;
    return {
      idle: {
        transactions: (after.transactions - before.transactions) / forSeconds,
        roundTrips: (tripsOf(after) - tripsOf(before)) / forSeconds,
      },
      traffic,
      rounds,
    };
  } finally {
    await stack.disposeAsync();
  }
}

/** Reads the counts of the server and of every service. */
async function sample(platform: DistributedPlatform, sockets: string): Promise<Sample> {
  const services = await trafficAt(platform, sockets);
  const reader = new pg.Client({ connectionString: platform.postgres.url() });
  await reader.connect();
  try {
    const { rows } = await reader.query(
      'select xact_commit + xact_rollback as n from pg_stat_database where datname = current_database()',
    );
    const transactions = Number(rows[0]?.n);
    return { at: performance.now(), transactions, services };
  } finally {
    await reader.end();
  }
}

/** Measures the traffic per run, minus the traffic of the idle platform in the same time. */
async function trafficOf({
  platform,
  sockets,
  inFlight,
  runs,
  idle: [idleFrom, idleTo],
}: {
  readonly platform: DistributedPlatform;
  readonly sockets: string;
  readonly inFlight: number;
  readonly runs: number;
  readonly idle: readonly [Sample, Sample];
}): Promise<RunTraffic> {
  const before = await sample(platform, sockets);
  await runAll(platform, { runs, inFlight });
  // PostgreSQL backends report their transactions with a delay.
  await pause(REPORT_MS);
  const after = await sample(platform, sockets);
  const share = (after.at - before.at) / (idleTo.at - idleFrom.at);
  const perRun = (of: (sample: Sample) => number): number =>
    (of(after) - of(before) - share * (of(idleTo) - of(idleFrom))) / runs;
  const services = Object.keys(after.services).map((service) => {
    const byContent = Object.keys(after.services[service]?.byContent ?? {}).map((content) => [
      content,
      perRun((each) => each.services[service]?.byContent[content] ?? 0),
    ]);
    const traffic: PostgresTraffic = {
      transactions: perRun((each) => each.services[service]?.transactions ?? 0),
      roundTrips: perRun((each) => each.services[service]?.roundTrips ?? 0),
      byContent: Object.fromEntries(byContent),
    };
    return [service, traffic];
  });
  return {
    inFlight,
    runs,
    transactions: perRun(({ transactions }) => transactions),
    roundTrips: perRun(tripsOf),
    services: Object.fromEntries(services),
  };
}

function tripsOf({ services }: Sample): number {
  return Object.values(services).reduce((sum, { roundTrips }) => sum + roundTrips, 0);
}

/** Measures one run at a time, then concurrent runs with the processor time of each service. */
async function timesOf(platform: DistributedPlatform, forMs: number): Promise<Round> {
  const run = () => twoSteps(platform);
  const alone = await measure(run, ALONE, forMs);
  const used = () =>
    platform.replicas.map(({ service, pid }) => [service, processorMs(pid) ?? Number.NaN] as const);
  const before = new Map(used());
  const crowded = await measure(run, CROWDED, forMs);
  const processor = used().map(([service, ms]) => [
    service,
    (ms - (before.get(service) ?? Number.NaN)) / crowded.operations,
  ]);
  return {
    p50AloneMs: alone.p50Ms,
    perSecond: crowded.perSecond,
    processorMs: Object.fromEntries(processor),
  };
}

function print({ idle, traffic, rounds }: DistributedFigures): void {
  console.log(
    `idle: ${idle.transactions.toFixed(1)} transactions and ${idle.roundTrips.toFixed(1)} round trips per second`,
  );
  for (const { inFlight, transactions, roundTrips, services } of traffic) {
    console.log(
      `${inFlight} in flight, per run: ${transactions.toFixed(1)} transactions, ${roundTrips.toFixed(1)} round trips`,
    );
    for (const [service, each] of Object.entries(services)) {
      console.log(
        `  ${service}: ${each.transactions.toFixed(1)} transactions, ${each.roundTrips.toFixed(1)} round trips`,
      );
      const largest = Object.entries(each.byContent).toSorted(([, a], [, b]) => b - a);
      for (const [content, n] of largest.slice(0, LISTED)) {
        if (n >= 0.05) console.log(`    ${n.toFixed(2)} ${content}`);
      }
    }
  }
  const middle = (of: (round: Round) => number): string => median(rounds.map(of)).toFixed(1);
  console.log(`p50 alone: ${middle(({ p50AloneMs }) => p50AloneMs)} ms`);
  console.log(`${CROWDED} in flight: ${middle(({ perSecond }) => perSecond)} runs/s`);
  for (const service of Object.keys(rounds[0]?.processorMs ?? {})) {
    console.log(
      `processor time of ${service}: ${middle((each) => each.processorMs[service] ?? Number.NaN)} ms per run`,
    );
  }
}
