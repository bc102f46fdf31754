import type { DistributedPlatform } from '@writ/testing/distributed';
import { startCounted, trafficAt, twoSteps } from './counted-platform.ts';

/**
 * Counts the round trips of runs alone, and returns the fewest of one run for each service: a run during which nothing
 * else happens.
 */
export async function fewestRoundTrips(runs: number): Promise<Readonly<Record<string, number>>> {
  const stack = new AsyncDisposableStack();
  try {
    const { platform, sockets } = await startCounted(stack);
    await twoSteps(platform);
    const fewest: Record<string, number> = {};
    let before = await tripsAt(platform, sockets);
    for (let run = 0; run < runs; run += 1) {
      await twoSteps(platform);
      const after = await tripsAt(platform, sockets);
      for (const [service, trips] of Object.entries(after)) {
        const ofRun = trips - (before[service] ?? Number.NaN);
        fewest[service] = Math.min(fewest[service] ?? Number.POSITIVE_INFINITY, ofRun);
      }
      before = after;
    }
    return fewest;
  } finally {
    await stack.disposeAsync();
  }
}

/** The round trips of every service so far. */
async function tripsAt(
  platform: DistributedPlatform,
  sockets: string,
): Promise<Readonly<Record<string, number>>> {
  const services = Object.entries(await trafficAt(platform, sockets));
  return Object.fromEntries(services.map(([service, { roundTrips }]) => [service, roundTrips]));
}
