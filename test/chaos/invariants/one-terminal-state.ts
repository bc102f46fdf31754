import type { Invariant } from './invariant.ts';

const LIVE = ['PENDING', 'RUNNING', 'WAITING_FOR_INPUT', 'SUSPENDED', 'PARKED', 'ENDING'];

export const oneTerminalState: Invariant = {
  holds:
    'every started run ends exactly once, with one RUN_END event for each of its agents (RT-4, AG-7, HK-1)',
  violations: async ({ platform, load }) => {
    const runs = await platform.rows(
      'supervisor',
      'select run_id, root_instance, state, result is not null as has_result from runs',
    );
    const ends = await platform.rows(
      'supervisor',
      `select split_part(subject, '.', 5) as run_id, split_part(subject, '.', 6) as agent, count(*)::integer as times
       from outbox where subject like '%.RUN_END' group by 1, 2`,
    );
    const known = new Map(runs.map((row) => [String(row.run_id), row]));
    const ended = new Set(ends.map((row) => `${row.run_id} ${row.agent}`));
    return [
      ...load.started
        .filter(({ runId }) => !known.has(runId))
        .map(({ runId }) => `acknowledged and lost: ${runId}`),
      ...runs
        .filter((row) => LIVE.includes(String(row.state)) || row.has_result !== true)
        .map((row) => `not ended: ${row.run_id} ${row.state}`),
      ...runs
        .filter((row) => !ended.has(`${row.run_id} ${row.root_instance}`))
        .map((row) => `no RUN_END: ${row.run_id} ${row.root_instance}`),
      ...ends
        .filter((row) => row.times !== 1)
        .map((row) => `RUN_END ${row.times} times: ${row.run_id} ${row.agent}`),
    ];
  },
};
