import { seeded } from '../load/random.ts';
import { disturb } from './faults/schedule.ts';
import { INVARIANTS } from './invariants/index.ts';
import { runFigures } from './load/load.ts';
import { underLoad } from './under-load.ts';

/** Options of a chaos test. Times are milliseconds. */
export interface ChaosOptions {
  readonly seed: number;
  readonly forMs: number;
  /** Runs in flight at the same time; default 6. */
  readonly inFlight?: number;
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

/** Disturbs service replicas, PostgreSQL, NATS and network links in the order that the seed determines. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, forMs, inFlight = 6, log = () => undefined } = options;
  const { outcome, load, endedAfterMs, violations, diagnostics } = await underLoad(
    { seed, inFlight },
    async ({ platform }) => await disturb(platform, seeded(seed), forMs, log),
  );
  const figures = {
    ...runFigures(load),
    disturbances: [...outcome.values()].reduce((sum, count) => sum + count, 0),
    ...Object.fromEntries([...outcome].sort()),
    'seconds until all runs ended': Math.round(endedAfterMs / 100) / 10,
    invariants: INVARIANTS.length,
  };
  return { figures, violations, diagnostics };
}
