import type { Invariant } from './invariant.ts';

export const noErrorOfOurs: Invariant = {
  holds:
    'no run ends for an error without a stop reason of its own: it is tried again (SYS-4, AG-7)',
  violations: async ({ load }) =>
    [...load.ended.values()]
      .filter(({ result }) => result?.stopReason.startsWith('error:'))
      .map(
        ({ runId, result }) => `${runId} ended with ${result?.stopReason}: ${result?.workerDetail}`,
      ),
};
