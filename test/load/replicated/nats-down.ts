import { setTimeout as pause } from 'node:timers/promises';
import { runFigures } from '../../chaos/load/load.ts';
import { assertNoViolations, underLoad } from '../../chaos/under-load.ts';
import { until } from '../../e2e/scripted/until.ts';

/** Options of the outage test. Times are milliseconds. */
export interface NatsDownOptions {
  readonly seed: number;
  readonly runs: number;
  readonly inFlight: number;
  readonly downMs: number;
}

/**
 * Stops NATS for a while during runs. Asserts that all runs finish and that every invariant holds, such as that each
 * event is in its timeline once, in order per emitter and agent (HK-1, HK-2).
 */
export async function natsDown({ seed, runs, inFlight, downMs }: NatsDownOptions) {
  const report = await underLoad(
    { seed, inFlight, runs },
    async ({ platform, load: { started, ended } }) => {
      const some = Math.ceil(runs / 10);
      await until('the first runs to end', () => ended.size >= some || undefined);
      const before = ended.size;
      await platform.nats.kill();
      await pause(downMs);
      const during = ended.size - before;
      const inFlight = started.length - ended.size;
      await platform.nats.start();
      return { before, during, inFlight };
    },
  );
  assertNoViolations(report);
  const { outcome, load, endedAfterMs } = report;
  return {
    ...runFigures(load),
    'runs ended before the outage': outcome.before,
    'runs ended during the outage': outcome.during,
    'runs in flight at the end of the outage': outcome.inFlight,
    'seconds from the end of the outage to the last end': (endedAfterMs / 1_000).toFixed(1),
  };
}
