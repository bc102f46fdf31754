import { setTimeout as pause } from 'node:timers/promises';
import { runFigures } from '../../chaos/load/load.ts';
import { underLoad } from '../../chaos/under-load.ts';
import { until } from '../../e2e/scripted/until.ts';

/** How the proof is made. Times are milliseconds. */
export interface NatsDownOptions {
  readonly seed: number;
  readonly runs: number;
  readonly inFlight: number;
  readonly downMs: number;
}

/**
 * NATS is gone for a while in the middle of runs. All of them finish; afterwards each event is in its
 * timeline once, in order per emitter and run, which is one of the invariants (HK-1, HK-2).
 */
export async function natsDown({ seed, runs, inFlight, downMs }: NatsDownOptions) {
  const { outcome, load, endedAfterMs } = await underLoad(
    { seed, inFlight, runs },
    async ({ platform, load: { started, ended } }) => {
      const some = Math.ceil(runs / 10);
      await until('the first runs to end', () => ended.size >= some || undefined);
      const before = ended.size;
      await platform.nats.kill();
      await pause(downMs);
      const meanwhile = ended.size - before;
      const underWay = started.length - ended.size;
      await platform.nats.start();
      return { before, meanwhile, underWay };
    },
  );
  return {
    ...runFigures(load),
    'ended before NATS went, while it was away': `${outcome.before}, ${outcome.meanwhile} (${outcome.underWay} under way when it came back)`,
    's from its return to the last end': (endedAfterMs / 1_000).toFixed(1),
  };
}
