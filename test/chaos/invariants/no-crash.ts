import type { Invariant } from './invariant.ts';

export const noCrash: Invariant = {
  holds: 'no process ends but those that were ended (SYS-4)',
  violations: async ({ platform }) => platform.replicas.flatMap(({ crashes }) => [...crashes]),
};
