import { setTimeout as pause } from 'node:timers/promises';
import type { DistributedPlatform } from '@writ/testing/distributed';
import { type Disturbance, KINDS } from './disturbance.ts';

const MAX_ACTIVE = 2;

/**
 * Disturbs a platform for `forMs` and ends every disturbance. The same seed gives the same disturbances in
 * the same order; their exact timing depends on the machine.
 * @returns the number of disturbances by kind
 */
export async function disturb(
  platform: DistributedPlatform,
  random: () => number,
  forMs: number,
  log: (line: string) => void,
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const active = new Map<string, Promise<void>>();
  const failures: unknown[] = [];
  const between = (least: number, most: number) => Math.round(least + random() * (most - least));
  const choose = <T>(from: readonly T[]): T => {
    const chosen = from[Math.floor(random() * from.length)];
    if (chosen === undefined) throw new Error('Cannot choose from an empty list.');
    return chosen;
  };
  const until = performance.now() + forMs;
  while (performance.now() < until && failures.length === 0) {
    await pause(between(200, 1_500));
    const next = choose(KINDS)(platform, choose, between);
    if (active.has(next.target)) continue;
    if (active.size >= MAX_ACTIVE) await Promise.race(active.values());
    const [kind = ''] = next.what.split(/[: ](?!-)/);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    log(`${next.what} for ${next.forMs} ms`);
    const done = inject(next)
      .catch((error: unknown) => void failures.push(error))
      .finally(() => active.delete(next.target));
    active.set(next.target, done);
  }
  await Promise.all(active.values());
  if (failures.length > 0) throw failures[0];
  return counts;
}

async function inject({ begin, end, forMs }: Disturbance): Promise<void> {
  await begin();
  await pause(forMs);
  await end();
}
