import { setTimeout as pause } from 'node:timers/promises';
import type { DistributedPlatform } from '@writ/testing/distributed';
import { type Disturbance, KINDS } from './disturbance.ts';

const MOST_AT_A_TIME = 2;

/**
 * Disturbs a platform until the time is over, and ends every disturbance. The same seed gives the same
 * disturbances in the same order; when exactly they meet the platform is up to the machine.
 * @returns how often each kind of thing was done
 */
export async function disturb(
  platform: DistributedPlatform,
  random: () => number,
  forMs: number,
  say: (line: string) => void,
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const underWay = new Map<string, Promise<void>>();
  const failures: unknown[] = [];
  const between = (least: number, most: number) => Math.round(least + random() * (most - least));
  const choose = <T>(from: readonly T[]): T => {
    const chosen = from[Math.floor(random() * from.length)];
    if (chosen === undefined) throw new Error('There is nothing to choose from.');
    return chosen;
  };
  const until = performance.now() + forMs;
  while (performance.now() < until && failures.length === 0) {
    await pause(between(200, 1_500));
    const next = choose(KINDS)(platform, choose, between);
    if (underWay.has(next.target)) continue;
    if (underWay.size >= MOST_AT_A_TIME) await Promise.race(underWay.values());
    const [kind = ''] = next.what.split(/[: ](?!-)/);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    say(`${next.what} for ${next.forMs} ms`);
    const done = happen(next)
      .catch((error: unknown) => void failures.push(error))
      .finally(() => underWay.delete(next.target));
    underWay.set(next.target, done);
  }
  await Promise.all(underWay.values());
  if (failures.length > 0) throw failures[0];
  return counts;
}

async function happen({ begin, end, forMs }: Disturbance): Promise<void> {
  await begin();
  await pause(forMs);
  await end();
}
