import type { Invariant } from './invariant.ts';

export const noInternalError: Invariant = {
  holds:
    'no run ends with an error that has no stop reason of its own; such errors are retried (SYS-4, AG-7)',
  violations: async ({ load }) =>
    [...load.ended.values()]
      .filter(({ result }) => result?.stopReason.startsWith('error:'))
      .map(
        ({ runId, result }) => `${runId} ended with ${result?.stopReason}: ${result?.workerDetail}`,
      ),
};
