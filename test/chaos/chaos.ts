import { seeded } from '@writ/testing/random';
import { disturb } from './faults/schedule.ts';
import { INVARIANTS } from './invariants/index.ts';
import { runFigures } from './load/load.ts';
import { underLoad } from './under-load.ts';

/** Options of a chaos test. Times are milliseconds. */
export interface ChaosOptions {
  readonly seed: number;
  /** Duration of the faults; extended until every kind of fault has been injected at least once. */
  readonly forMs: number;
  /** Maximum time after the end of all faults until only waiting runs hold resources; default 60 s. */
  readonly strandedWithinMs?: number;
  /** Runs in flight at the same time; default 6. */
  readonly inFlight?: number;
  /** Replicas of each service; default 2. */
  readonly replicas?: number;
  /** Receives one line for each disturbance. */
  readonly log?: (line: string) => void;
}

/** The outcome of a chaos test. */
export interface ChaosReport {
  readonly figures: { readonly runs: number; readonly disturbances: number } & Readonly<
    Record<string, number | string>
  >;
  /** Broken invariants with the ids concerned; empty when every invariant holds. */
  readonly violations: readonly string[];
  /** The seed, the state of the hook stream and the last log lines of each replica. */
  readonly diagnostics: string;
}

/**
 * Injects faults into service replicas, their clocks, stores and links, PostgreSQL and NATS, and attacks the platform,
 * in the order that the seed determines.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, forMs, inFlight = 6, strandedWithinMs = 60_000, replicas } = options;
  const { log = () => undefined } = options;
  const report = await underLoad(
    { seed, inFlight, replicas, hostile: { strandedWithinMs } },
    async (scene) => await disturb(scene, seeded(seed), forMs, log),
  );
  const { outcome, load, endedAfterMs, freeAfterMs, violations, diagnostics } = report;
  const figures = {
    ...runFigures(load),
    disturbances: [...outcome.values()].reduce((sum, count) => sum + count, 0),
    'kinds of faults never injected': [...outcome]
      .flatMap(([kind, count]) => (count === 0 ? [kind] : []))
      .join(', '),
    ...Object.fromEntries([...outcome].map(([kind, count]) => [`fault: ${kind}`, count])),
    'seconds until nothing was stranded': Math.round(freeAfterMs / 100) / 10,
    'seconds until all runs ended': Math.round(endedAfterMs / 100) / 10,
    invariants: INVARIANTS.length,
  };
  return { figures, violations, diagnostics };
}
