import { availableParallelism, cpus } from 'node:os';
import type { BenchOptions } from './bench.ts';
import { median, type Speed } from './measure.ts';
import { PEERS, type PeerEntry } from './peers/catalog.ts';
import { installPackages, versionOf } from './peers/install-packages.ts';
import { type Peer, type PeerSurroundings, startPeer } from './peers/peer-process.ts';
import { type PeerFigures, type PeerReport, printReport, writeReport } from './peers/report.ts';
import { startSurroundings } from './peers/surroundings.ts';

const ALONE = 1;
const CROWDED = 16;
const DEFAULT_ROUNDS = 5;
const DEFAULT_SECONDS = 3;
const WARM_UP_MS = 5_000;
/** Maximum p50 of one run at a time relative to DBOS. */
const MAX_P50_RATIO = 1.5;
/** Maximum time per run at {@link CROWDED} in flight relative to DBOS. */
const MAX_TIME_RATIO = 1.8;

/** A started peer with the speeds of its rounds, by runs in flight. */
interface Measured {
  readonly entry: PeerEntry;
  readonly peer: Peer;
  readonly speeds: Map<number, Speed[]>;
}

/**
 * Measures the same run (model, tool that does nothing, model, answer) through other libraries and through Writ (CO-1):
 * in turns, round after round, each in its own process, with a model that answers at once in another process. Prints a
 * table and writes `peers.json` and `peers.svg`. A peer that fails to start or to warm up is listed with the error.
 * Returns whether Writ is faster than LangGraph JS with PostgreSQL, and takes at most {@link MAX_P50_RATIO} times the
 * p50 and {@link MAX_TIME_RATIO} times the time per run of DBOS.
 */
export async function benchPeers(options: BenchOptions): Promise<boolean> {
  const { rounds = DEFAULT_ROUNDS, seconds = DEFAULT_SECONDS, outDir = 'dist/bench' } = options;
  const stack = new AsyncDisposableStack();
  try {
    const packages = await installPackages();
    const surroundings = await startSurroundings(packages);
    stack.defer(() => surroundings.close());
    const failures = new Map<string, string>();
    const measured: Measured[] = [];
    for (const entry of PEERS) {
      const peer = await start(entry, surroundings, failures);
      if (peer === undefined) continue;
      stack.defer(() => peer.close());
      measured.push({ entry, peer, speeds: new Map() });
    }
    for (let round = 0; round < rounds; round += 1) {
      for (const inFlight of [ALONE, CROWDED]) await measureRound(measured, inFlight, seconds);
    }
    const report: PeerReport = {
      measuredAt: new Date().toISOString(),
      machine: `${availableParallelism()} cores, ${cpus()[0]?.model ?? 'unknown processor'}, Node ${process.version}`,
      rounds,
      secondsPerRound: seconds,
      peers: PEERS.map((entry) => figuresOf(entry, packages, measured, failures)),
    };
    printReport(report);
    writeReport(report, outDir);
    return verdict(report);
  } finally {
    await stack.disposeAsync();
  }
}

/** Starts a peer and warms it up. If this fails, adds the error to `failures` and returns undefined. */
async function start(
  entry: PeerEntry,
  surroundings: PeerSurroundings,
  failures: Map<string, string>,
): Promise<Peer | undefined> {
  let peer: Peer | undefined;
  try {
    peer = await startPeer(entry, surroundings);
    await peer.measure(CROWDED, WARM_UP_MS);
    return peer;
  } catch (error) {
    await peer?.close();
    failures.set(entry.id, (error as Error).message);
    return undefined;
  }
}

/** Measures each peer once. */
async function measureRound(
  measured: readonly Measured[],
  inFlight: number,
  seconds: number,
): Promise<void> {
  for (const { peer, speeds } of measured) {
    const speed = await peer.measure(inFlight, seconds * 1_000);
    speeds.set(inFlight, [...(speeds.get(inFlight) ?? []), speed]);
  }
}

function figuresOf(
  { id, name, package: packageName, enforces, durable }: PeerEntry,
  packages: string,
  measured: readonly Measured[],
  failures: ReadonlyMap<string, string>,
): PeerFigures {
  const speeds = measured.find(({ entry }) => entry.id === id)?.speeds;
  const middle = (inFlight: number, figure: keyof Speed): number =>
    median((speeds?.get(inFlight) ?? []).map((speed) => speed[figure]));
  const error = failures.get(id);
  return {
    id,
    name,
    version: packageName === undefined ? '' : versionOf(packageName, packages),
    enforces,
    durable,
    ...(error === undefined
      ? { p50Ms: middle(ALONE, 'p50Ms'), perSecond: middle(CROWDED, 'perSecond') }
      : { error }),
  };
}

function verdict({ peers }: PeerReport): boolean {
  const of = (id: string) => {
    const { p50Ms = Number.NaN, perSecond = Number.NaN } =
      peers.find((peer) => peer.id === id) ?? {};
    return { p50Ms, perSecond };
  };
  const [writ, graph, dbos] = [of('writ'), of('langgraph-postgres'), of('dbos')];
  const isFasterThanGraph = writ.p50Ms < graph.p50Ms && writ.perSecond > graph.perSecond;
  const p50Ratio = writ.p50Ms / dbos.p50Ms;
  const timeRatio = dbos.perSecond / writ.perSecond;
  const isEnough = isFasterThanGraph && p50Ratio <= MAX_P50_RATIO && timeRatio <= MAX_TIME_RATIO;
  console.log(
    `${isEnough ? 'PASS' : 'FAIL'}: Writ ${isFasterThanGraph ? 'is' : 'is not'} faster than LangGraph JS with PostgreSQL in p50 alone and in runs/s at ${CROWDED} in flight; it takes ${p50Ratio.toFixed(2)} times the p50 of DBOS alone (maximum ${MAX_P50_RATIO}) and ${timeRatio.toFixed(2)} times its time per run at ${CROWDED} (maximum ${MAX_TIME_RATIO}).`,
  );
  return isEnough;
}
