import type { DistributedPlatform } from '@writ/testing/distributed';
import { startCounted, trafficAt, twoSteps } from './counted-platform.ts';

const IN_FLIGHT = 16;
const WARM_UP_RUNS = 16;

/**
 * Returns the average round trips of a run for each service, with {@link IN_FLIGHT} runs in flight. Background loops are
 * included: their share is small, because many runs pass in the time between two iterations, on a slow machine as well.
 */
export async function roundTripsPerRun(runs: number): Promise<Readonly<Record<string, number>>> {
  const stack = new AsyncDisposableStack();
  try {
    const { platform, sockets } = await startCounted(stack);
    await runAll(platform, WARM_UP_RUNS);
    const before = await trafficAt(platform, sockets);
    await runAll(platform, runs);
    const after = await trafficAt(platform, sockets);
    const services = Object.entries(after).map(([service, { roundTrips }]) => {
      const first = before[service]?.roundTrips ?? Number.NaN;
      return [service, (roundTrips - first) / runs] as const;
    });
    return Object.fromEntries(services);
  } finally {
    await stack.disposeAsync();
  }
}

/** Starts runs, of which {@link IN_FLIGHT} are in flight, and resolves when all have succeeded. */
async function runAll(platform: DistributedPlatform, runs: number): Promise<void> {
  let left = runs;
  const next = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await twoSteps(platform);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, next));
}
