import { strict as assert } from 'node:assert';
import { setTimeout as pause } from 'node:timers/promises';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { type DistributedPlatform, startDistributedPlatform } from '@writ/testing/distributed';
import { untilAdmitted } from '../admitted.ts';

/** Maximum ratio between the shares of the two workers. */
const MAX_IMBALANCE = 1.3;
const IN_FLIGHT = 16;

/** Records the lease owner of each step as it ends, because the worker's rows do not keep it. */
const LEASE_LOG = `
create table lease_log (owner text not null, run_id text not null, steps integer not null);
create function log_lease() returns trigger language plpgsql as $$ begin
  insert into agent_worker.lease_log values (old.lease_owner, old.run_id, new.step_ended - old.step_ended);
  return new;
end $$;
create trigger log_lease after update on agents for each row
  when (old.lease_owner is not null and new.step_ended > old.step_ended) execute function log_lease();`;

interface Share {
  readonly runs: number;
  readonly steps: number;
}

/**
 * Completes runs on one worker and on two workers with one store. Asserts that the two workers share the runs evenly
 * without a coordinator (RT-2, SYS-5), and returns the throughput of both.
 */
export async function sharedRuns({ runs }: { readonly runs: number }) {
  const one = await withWorkers(1, runs);
  const two = await withWorkers(2, runs);
  const [least = 0, most = 0] = two.shares.map((share) => share.runs).sort((a, b) => a - b);
  assert.equal(two.shares.length, 2, 'workers that claimed runs');
  assert.ok(most <= least * MAX_IMBALANCE, `one worker ran ${most} agents, the other ${least}`);
  return {
    runs,
    'runs by worker': two.shares.map((share) => share.runs).join(', '),
    'steps by worker': two.shares.map(({ steps }) => steps).join(', '),
    'steps per second with one and with two workers': [one, two]
      .map(({ stepsPerSecond }) => stepsPerSecond.toFixed(1))
      .join(', '),
    'speed-up': (two.stepsPerSecond / one.stepsPerSecond).toFixed(2),
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
    await platform.rows('agent-worker', LEASE_LOG);
    const from = performance.now();
    await drive(platform, 'shared', runs);
    const seconds = (performance.now() - from) / 1_000;
    const rows = await platform.rows(
      'agent-worker',
      'select owner, count(distinct run_id) as runs, sum(steps) as steps from lease_log group by owner',
    );
    const shares = rows.map((row) => ({ runs: Number(row.runs), steps: Number(row.steps) }));
    const steps = shares.reduce((sum, share) => sum + share.steps, 0);
    return { shares, stepsPerSecond: steps / seconds };
  } finally {
    await platform.close();
  }
}

/** Runs the refund desk `runs` times with bounded concurrency, each to its end. */
async function drive({ client }: DistributedPlatform, name: string, runs: number): Promise<void> {
  let next = 0;
  const driveNext = async (): Promise<void> => {
    while (next < runs) {
      const requestId = `${name}-${next}`;
      next += 1;
      const request = { requestId, agent: 'refund-worker', model: 'sim-auto-1000', goal: 'Do it.' };
      const { run } = await untilAdmitted(() => client.runs.startRun(request));
      const runId = run?.runId ?? '';
      for (let state = run?.state; state === undefined || state <= RunState.ENDING; ) {
        await pause(20);
        state = (await client.runs.getRun({ runId })).run?.state;
      }
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, driveNext));
}
