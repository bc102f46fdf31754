import { isFakeClockAvailable } from '@writ/testing/faults';
import type { Kind } from './disturbance.ts';

/** Steps within the leeway of the services. */
const STEPS_MS = [-30_000, -10_000, 10_000, 30_000];
/**
 * Far beyond the leeway, but less than the hour for which published events stay in the outbox, where the invariants
 * read them.
 */
const FAR_MS = 3_000_000;

/** Faults of wall clocks: the clock of one replica differs from the clocks of its peers (BD-3). */
export const CLOCK_KINDS: readonly Kind[] = [
  {
    name: 'clock step',
    isBackground: true,
    isPossible: () => isFakeClockAvailable(),
    times: 2,
    disturbance: ({ platform: { replicas } }, choose, between) => {
      const replica = choose(replicas);
      const ms = choose(STEPS_MS);
      return {
        what: `clock of ${replica.name} steps by ${ms} ms`,
        targets: [`clock of ${replica.name}`],
        begin: () => replica.setClock(ms),
        // The clock is corrected, which is a step in the other direction.
        end: () => replica.setClock(0),
        forMs: between(2_000, 10_000),
      };
    },
  },
  {
    name: 'clock far from the others',
    isBackground: true,
    isPossible: () => isFakeClockAvailable(),
    disturbance: ({ platform: { replicas } }, choose, between) => {
      const replica = choose(replicas);
      const ms = choose([-FAR_MS, FAR_MS]);
      return {
        what: `clock of ${replica.name} is ${ms} ms ahead`,
        targets: [`clock of ${replica.name}`],
        begin: () => replica.setClock(ms),
        end: () => replica.setClock(0),
        forMs: between(2_000, 10_000),
      };
    },
  },
];
