import { seeded } from '../load/random.ts';
import { disturb } from './faults/schedule.ts';
import { INVARIANTS } from './invariants/index.ts';
import { runFigures } from './load/load.ts';
import { underLoad } from './under-load.ts';

/** How chaos is made. Times are milliseconds. */
export interface ChaosOptions {
  readonly seed: number;
  readonly forMs: number;
  /** Runs under way at the same time; default 6. */
  readonly inFlight?: number;
  /** Told of everything that is done. */
  readonly say?: (line: string) => void;
}

/**
 * Everything fails as the seed has it: replicas of services, PostgreSQL, NATS and the wires between them.
 * @returns figures
 * @throws Error naming each broken invariant, the ids concerned and the seed
 */
export async function chaos(options: ChaosOptions): Promise<Record<string, number | string>> {
  const { seed, forMs, inFlight = 6, say = () => undefined } = options;
  const { outcome, load, endedAfterMs } = await underLoad(
    { seed, inFlight },
    async ({ platform }) => await disturb(platform, seeded(seed), forMs, say),
  );
  return {
    ...runFigures(load),
    disturbances: [...outcome.values()].reduce((sum, count) => sum + count, 0),
    ...Object.fromEntries([...outcome].sort()),
    's until all had ended': Math.round(endedAfterMs / 100) / 10,
    invariants: INVARIANTS.length,
  };
}
