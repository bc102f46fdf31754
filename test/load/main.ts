/**
 * `npm run load` lists the load tests; `npm run load -- NAME [--seed N] [--steps N] [--agents N]` runs one, `all` runs
 * every one.
 */
import { strict as assert } from 'node:assert';
import { parseArgs } from 'node:util';
import { answeredThenKilled } from './answered-then-killed.ts';
import { flood } from './flood.ts';
import { frozenWorker } from './frozen-worker.ts';
import { gatewayKill } from './gateway-kill.ts';
import { meterCap } from './meter-cap.ts';
import { MeterHarness } from './meter-harness.ts';
import { modelShare } from './model-share.ts';
import { orderKills } from './orders.ts';
import { boundedOverload } from './overload.ts';
import { races } from './races.ts';
import { cuts } from './replicated/cuts.ts';
import { manyTenants } from './replicated/many-tenants.ts';
import { natsDown } from './replicated/nats-down.ts';
import { sharedRuns } from './replicated/shared-runs.ts';
import { runMemory } from './run-memory.ts';
import { spawnCap } from './spawn-cap.ts';
import { longRun } from './steps/long-run.ts';
import { streamAbort } from './stream-abort.ts';
import { suspendedAgents } from './suspended/suspended-agents.ts';
import { teamKills } from './team-kills.ts';

type Figures = Readonly<Record<string, string | number | bigint | undefined>>;

interface LoadTest {
  readonly about: string;
  run(seed: number, size: Size): Promise<Figures>;
}

/** Sizes that an option of the command replaces. */
interface Size {
  /** Only for long-run: steps of the run. */
  readonly steps: number;
  /** Only for suspended-agents: suspended agents. */
  readonly agents: number;
}

const LOAD_TESTS: Readonly<Record<string, LoadTest>> = {
  'meter-cap': {
    about: '1,000 concurrent calls of $0.10 against a cap of $5.00 (EM-3)',
    run: () => onMeter((harness) => meterCap(harness, { calls: 1_000 })),
  },
  'meter-kills': {
    about: 'meter-cap with the meter killed at random moments, 20 rounds (EM-3, EM-7)',
    run: (seed) =>
      onMeter((harness) => meterCap(harness, { calls: 1_000, kills: { rounds: 20, seed } })),
  },
  'spawn-cap': {
    about: '1,000 acquires from 4 processes against max_agents 20 (SB-2, SB-6)',
    run: () => spawnCap({ acquires: 1_000 }),
  },
  'model-share': {
    about: '2,000 CRITICAL and NORMAL calls on a model with one slot, then BACKGROUND (SUP-3)',
    run: async () => {
      const figures = await onMeter((harness) => modelShare(harness, { calls: 2_000 }));
      assert.ok(Math.abs(figures.ratio / figures.wanted - 1) <= 0.15, `ratio ${figures.ratio}`);
      assert.equal(figures['BACKGROUND during saturation'], 0);
      assert.equal(figures['BACKGROUND afterwards'], 10);
      return figures;
    },
  },
  'stream-abort': {
    about: 'latency until a provider sees that a stream was aborted (EM-8, EM-9)',
    run: () => onMeter((harness) => streamAbort(harness, { times: 50 })),
  },
  'gateway-kill': {
    about: '300 kill -9 of the gateway between intent and outcome of calls (TG-5)',
    run: (seed) => gatewayKill({ kills: 300, seed }),
  },
  flood: {
    about: '10,000 concurrent calls of one slow source, and the latency of another source (TG-6)',
    run: async () => {
      const figures = await flood({ calls: 10_000, idleMs: 4_000 });
      assert.equal(figures['other outcomes'], '{}');
      assert.equal(figures.executed + figures.overloaded, 10_000);
      assert.equal(figures['failed calls of the other source'], 0);
      assert.ok(figures.executed > 0 && figures['calls of the other source during the flood'] > 0);
      return figures;
    },
  },
  overload: {
    about: 'starts at twice the capacity for 30 s, p99 of accepted runs and of Halt (BD-5, BD-2)',
    run: () => boundedOverload(),
  },
  'answered-then-killed': {
    about: 'workers killed after the provider answered (EM-7)',
    run: () => onMeter((harness) => answeredThenKilled(harness, { times: 20 })),
  },
  'team-kills': {
    about: '500 runs of the research team, the platform killed every 3 to 10 s (AG-3, RT-1, TG-5)',
    run: (seed) => teamKills({ runs: 500, batch: 20, seed, killAfterMs: [3_000, 10_000] }),
  },
  'frozen-worker': {
    about: 'a worker frozen past its lease and thawed, 200 times (RT-2)',
    run: (seed) => frozenWorker({ rounds: 200, seed }),
  },
  races: {
    about:
      '5,000 runs whose finish races with a cancellation, deadline, halt and preemption (RT-4, AG-7)',
    run: (seed) => races({ runs: 5_000, seed }),
  },
  'suspended-agents': {
    about: '100,000 suspended agents: memory of the worker, and wake-up latency of a signal',
    run: (_seed, { agents }) => suspendedAgents({ many: agents, wakes: 300 }),
  },
  'run-memory': {
    about: 'live heap after 500 and after 5,000 runs of two steps (CO-2)',
    run: async () => {
      const { firstMb, lastMb, grownMb } = await runMemory({ before: 500, runs: 5_000 });
      assert.ok(grownMb < 5, `the live heap grew by ${grownMb.toFixed(1)} MB`);
      return { 'MB after 500 runs': firstMb.toFixed(1), 'MB after 5,000 runs': lastMb.toFixed(1) };
    },
  },
  'long-run': {
    about:
      'one run of 10,000 steps: constant cost per step, and resume from a bounded number of rows',
    run: (_seed, { steps }) => longRun({ steps }),
  },
  'order-kills': {
    about:
      'the platform killed at each step of every order, and again during recovery (SUP-8, SUP-9)',
    run: (seed) => orderKills({ furtherKills: 6, seed }),
  },
  'nats-down': {
    about: 'NATS down for 60 s during 50 runs on two replicas of every service (HK-1, HK-2)',
    run: (seed) => natsDown({ seed, runs: 50, inFlight: 10, downMs: 60_000 }),
  },
  cuts: {
    about: 'the workers partitioned from each of their peers in turn, 30 s each (SYS-4, RT-2)',
    run: (seed) => cuts({ seed, forMs: 30_000 }),
  },
  'shared-runs': {
    about: 'two workers share 200 runs: balance and added throughput (RT-2, SYS-5)',
    run: () => sharedRuns({ runs: 200 }),
  },
  'many-tenants': {
    about: '1,000 tenants with 10 runs each on two replicas, and a hot tenant with a cap (SYS-5)',
    run: () => manyTenants({ tenants: 1_000, runsPerTenant: 10, rounds: 5, roundMs: 15_000 }),
  },
};

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: '1' },
    steps: { type: 'string', default: '10000' },
    agents: { type: 'string', default: '100000' },
  },
});
const [name = ''] = positionals;
const chosen = Object.entries(LOAD_TESTS).filter(([known]) => name === 'all' || known === name);
if (chosen.length === 0) {
  console.log('npm run load -- NAME [--seed N]');
  console.log('npm run load -- long-run [--steps N]');
  console.log('npm run load -- suspended-agents [--agents N]');
  for (const [known, { about }] of Object.entries(LOAD_TESTS)) {
    console.log(`  ${known.padEnd(20)}  ${about}`);
  }
  console.log(`  ${'all'.padEnd(20)}  runs every load test in turn`);
  process.exitCode = name === '' ? 0 : 1;
}
for (const [known, { run }] of chosen) {
  const started = performance.now();
  try {
    const figures = await run(Number(values.seed), {
      steps: Number(values.steps),
      agents: Number(values.agents),
    });
    const seconds = ((performance.now() - started) / 1_000).toFixed(1);
    console.log(`PASS: ${known}, seed ${values.seed}, ${seconds} s`);
    for (const [figure, value] of Object.entries(figures)) console.log(`  ${figure}: ${value}`);
  } catch (error) {
    console.log(`FAIL: ${known}, seed ${values.seed}`);
    console.log(error);
    process.exitCode = 1;
  }
}

async function onMeter<F extends Figures>(test: (harness: MeterHarness) => Promise<F>): Promise<F> {
  const harness = await MeterHarness.start();
  try {
    return await test(harness);
  } finally {
    await harness.close();
  }
}
