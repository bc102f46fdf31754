import { expect, it } from 'vitest';
import { fewestRoundTrips } from './distributed/fewest-round-trips.ts';

/** What a two-step run alone may take of each service: the recorded figures. */
const MAX_ROUND_TRIPS: Readonly<Record<string, number>> = {
  supervisor: 61,
  'spawn-budget': 7,
  'execution-meter': 34,
  'tool-gateway': 9,
  'agent-worker': 8,
};
/** On a busy machine leases of slots expire between two runs, and background loops fall into every run. */
const MARGIN = 5;

it('takes no more round trips to PostgreSQL than recorded in a run with two steps (CO-1, SYS-5)', async () => {
  const fewest = await fewestRoundTrips(40);
  expect(Object.keys(fewest).sort()).toEqual(Object.keys(MAX_ROUND_TRIPS).sort());
  for (const [service, roundTrips] of Object.entries(fewest)) {
    const maximum = (MAX_ROUND_TRIPS[service] ?? 0) + MARGIN;
    expect(roundTrips, `round trips of ${service}`).toBeLessThanOrEqual(maximum);
    // A count of nothing would be within every budget.
    expect(roundTrips, `round trips of ${service}`).toBeGreaterThan(1);
  }
});
