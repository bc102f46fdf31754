import type { Invariant } from './invariant.ts';

export const noInternalError: Invariant = {
  holds:
    'no run ends with a stop reason that starts with error:, because errors without a specific stop reason are retried (SYS-4, AG-7)',
  violations: async ({ load }) =>
    [...load.ended.values()]
      .filter(({ result }) => result?.stopReason.startsWith('error:'))
      .map(
        ({ runId, result }) => `${runId} ended with ${result?.stopReason}: ${result?.workerDetail}`,
      ),
};
