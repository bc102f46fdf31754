import { strict as assert } from 'node:assert';
import { setTimeout as pause } from 'node:timers/promises';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { type DistributedPlatform, startDistributedPlatform } from '@writ/testing/distributed';

/** How far the share of one worker may be from that of the other. */
const MOST_APART = 1.3;
const IN_FLIGHT = 16;

/** Notes who held the lease of whatever ended, as it ends: the worker's rows forget it. */
const BOOK = `
create table lease_book (owner text not null, run_id text not null, steps integer not null);
create function book_lease() returns trigger language plpgsql as $$ begin
  insert into agent_worker.lease_book values (old.lease_owner, old.run_id, new.step_ended - old.step_ended);
  return new;
end $$;
create trigger book_lease after update on agents for each row
  when (old.lease_owner is not null and new.step_ended > old.step_ended) execute function book_lease();`;

interface Share {
  readonly runs: number;
  readonly steps: number;
}

/**
 * Two workers with one store share runs about evenly, though nobody hands them out (RT-2, SYS-5); and
 * what a second worker adds to the steps per second of one.
 */
export async function sharedRuns({ runs }: { readonly runs: number }) {
  const one = await withWorkers(1, runs);
  const two = await withWorkers(2, runs);
  const [least = 0, most = 0] = two.shares.map((share) => share.runs).sort((a, b) => a - b);
  assert.equal(two.shares.length, 2, 'workers that took runs');
  assert.ok(most <= least * MOST_APART, `one worker had ${most} runs, the other ${least}`);
  return {
    runs,
    'runs of each worker': two.shares.map((share) => share.runs).join(', '),
    'steps of each worker': two.shares.map(({ steps }) => steps).join(', '),
    'steps per second with one worker, with two': [one, two]
      .map(({ stepsPerSecond }) => stepsPerSecond.toFixed(1))
      .join(', '),
    'two in ones': (two.stepsPerSecond / one.stepsPerSecond).toFixed(2),
  };
}

async function withWorkers(
  workers: number,
  runs: number,
): Promise<{ shares: Share[]; stepsPerSecond: number }> {
  const platform = await startDistributedPlatform({
    replicas: {
      supervisor: 1,
      'spawn-budget': 1,
      'execution-meter': 1,
      'tool-gateway': 1,
      'agent-worker': workers,
    },
  });
  try {
    await drive(platform, 'warm-up', IN_FLIGHT);
    await platform.rows('agent-worker', BOOK);
    const from = performance.now();
    await drive(platform, 'shared', runs);
    const seconds = (performance.now() - from) / 1_000;
    const rows = await platform.rows(
      'agent-worker',
      'select owner, count(distinct run_id) as runs, sum(steps) as steps from lease_book group by owner',
    );
    const shares = rows.map((row) => ({ runs: Number(row.runs), steps: Number(row.steps) }));
    const steps = shares.reduce((sum, share) => sum + share.steps, 0);
    return { shares, stepsPerSecond: steps / seconds };
  } finally {
    await platform.close();
  }
}

/** Runs the refund desk so many times, some at a time, each to its end. */
async function drive({ client }: DistributedPlatform, name: string, runs: number): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < runs) {
      const requestId = `${name}-${next}`;
      next += 1;
      const request = { requestId, agent: 'refund-worker', model: 'sim-auto-1000', goal: 'Do it.' };
      const { run } = await client.runs.startRun(request);
      const runId = run?.runId ?? '';
      for (let state = run?.state; state === undefined || state <= RunState.ENDING; ) {
        await pause(20);
        state = (await client.runs.getRun({ runId })).run?.state;
      }
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
}
