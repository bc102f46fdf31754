import { expect, it } from 'vitest';
import { roundTripsPerRun } from './distributed/round-trips-per-run.ts';

/**
 * Maximum round trips of each service for a two-step run: half as many again as on a quiet machine, which takes 68, 7, 34, 12 and
 * 13. On a busy one runs last longer, so that watches and background loops read more often, and fewer statements and commits
 * meet: the supervisor took 87 there.
 */
const MAX_ROUND_TRIPS: Readonly<Record<string, number>> = {
  supervisor: 105,
  'spawn-budget': 14,
  'execution-meter': 55,
  'tool-gateway': 24,
  'agent-worker': 24,
};

it('stays within its round trips to PostgreSQL in runs with two steps (CO-1, SYS-5)', async () => {
  const perRun = await roundTripsPerRun(96);
  expect(Object.keys(perRun).sort()).toEqual(Object.keys(MAX_ROUND_TRIPS).sort());
  for (const [service, roundTrips] of Object.entries(perRun)) {
    const maximum = MAX_ROUND_TRIPS[service] ?? 0;
    expect(roundTrips, `round trips of ${service}`).toBeLessThanOrEqual(maximum);
    // A count of nothing would be within every maximum.
    expect(roundTrips, `round trips of ${service}`).toBeGreaterThan(1);
  }
});
