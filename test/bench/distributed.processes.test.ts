import { expect, it, onTestFinished } from 'vitest';
import { runAll, startCounted, trafficAt } from './distributed/counted-platform.ts';

const IN_FLIGHT = 16;
const RUNS = 96;

/**
 * Maximum round trips of each service for a two-step run: at least 1.5 times the figures of an idle machine, which are
 * 68, 7, 34, 12 and 13. On a busy machine runs take longer, so watches and background loops read more often and fewer
 * statements and commits are batched: the supervisor needed 87 there.
 */
const MAX_ROUND_TRIPS: Readonly<Record<string, number>> = {
  supervisor: 105,
  'spawn-budget': 14,
  'execution-meter': 55,
  'tool-gateway': 24,
  'agent-worker': 24,
};

it('stays within the maximum round trips to PostgreSQL in two-step runs (CO-1, SYS-5)', async () => {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const { platform, sockets } = await startCounted(stack);
  await runAll(platform, { runs: IN_FLIGHT, inFlight: IN_FLIGHT });
  const before = await trafficAt(platform, sockets);
  await runAll(platform, { runs: RUNS, inFlight: IN_FLIGHT });
  const after = await trafficAt(platform, sockets);
  expect(Object.keys(after).sort()).toEqual(Object.keys(MAX_ROUND_TRIPS).sort());
  for (const [service, traffic] of Object.entries(after)) {
    const first = before[service]?.roundTrips ?? Number.NaN;
    const roundTrips = (traffic.roundTrips - first) / RUNS;
    const maximum = MAX_ROUND_TRIPS[service] ?? 0;
    expect(roundTrips, `round trips of ${service}`).toBeLessThanOrEqual(maximum);
    // A counter that counts nothing would pass every maximum.
    expect(roundTrips, `round trips of ${service}`).toBeGreaterThan(1);
  }
});
