import { expect, it } from 'vitest';
import { roundTripsPerRun } from './distributed/round-trips-per-run.ts';

/**
 * Maximum round trips of each service for a two-step run, higher than on a quiet machine: beside four busy processes for each
 * core, the supervisor takes 75 instead of 68, the gateway 16 instead of 13, since fewer statements and commits meet.
 */
const MAX_ROUND_TRIPS: Readonly<Record<string, number>> = {
  supervisor: 82,
  'spawn-budget': 10,
  'execution-meter': 43,
  'tool-gateway': 20,
  'agent-worker': 20,
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
