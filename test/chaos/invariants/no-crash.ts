import type { Invariant } from './invariant.ts';

export const noCrash: Invariant = {
  holds: 'no process exits except those that the test killed (SYS-4)',
  violations: async ({ platform }) => platform.replicas.flatMap(({ crashes }) => [...crashes]),
};
