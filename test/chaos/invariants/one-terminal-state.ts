import type { Invariant } from './invariant.ts';

const LIVE = ['PENDING', 'RUNNING', 'SUSPENDED', 'PARKED', 'ENDING'];

export const oneTerminalState: Invariant = {
  holds:
    'every started run ends exactly once and publishes RUN_END exactly once (RT-4, AG-7, HK-1)',
  violations: async ({ platform, load }) => {
    const runs = await platform.rows(
      'supervisor',
      'select run_id, state, result is not null as has_result from runs',
    );
    const ends = await platform.rows(
      'supervisor',
      "select split_part(subject, '.', 5) as run_id from outbox where subject like '%.RUN_END'",
    );
    const known = new Map(runs.map((row) => [String(row.run_id), row]));
    const published = ends.map((row) => String(row.run_id));
    return [
      ...load.started
        .filter(({ runId }) => !known.has(runId))
        .map(({ runId }) => `acknowledged and lost: ${runId}`),
      ...runs
        .filter((row) => LIVE.includes(String(row.state)) || row.has_result !== true)
        .map((row) => `not ended: ${row.run_id} ${row.state}`),
      ...runs
        .map(
          (row) => [row.run_id, published.filter((runId) => runId === row.run_id).length] as const,
        )
        .filter(([, times]) => times !== 1)
        .map(([runId, times]) => `RUN_END ${times} times: ${runId}`),
    ];
  },
};
