/** `npm run load` lists the proofs, `npm run load -- NAME [--seed N]` runs one; `all` runs all of them. */
import { parseArgs } from 'node:util';
import { answeredThenKilled } from './answered-then-killed.ts';
import { flood } from './flood.ts';
import { frozenWorker } from './frozen-worker.ts';
import { gatewayKill } from './gateway-kill.ts';
import { meterCap } from './meter-cap.ts';
import { MeterStage } from './meter-stage.ts';
import { modelShare } from './model-share.ts';
import { orderKills } from './orders.ts';
import { races } from './races.ts';
import { cuts } from './replicated/cuts.ts';
import { natsDown } from './replicated/nats-down.ts';
import { sharedRuns } from './replicated/shared-runs.ts';
import { sleepers } from './sleepers/sleepers.ts';
import { spawnCap } from './spawn-cap.ts';
import { longRun } from './steps/long-run.ts';
import { streamAbort } from './stream-abort.ts';
import { teamKills } from './team-kills.ts';

type Figures = Readonly<Record<string, string | number | undefined>>;

interface Proof {
  readonly about: string;
  run(seed: number): Promise<Figures>;
}

const PROOFS: Readonly<Record<string, Proof>> = {
  'meter-cap': {
    about: '1,000 concurrent calls of $0.10 against a cap of $5.00 (EM-3)',
    run: () => onMeter((stage) => meterCap(stage, { calls: 1_000 })),
  },
  'meter-kills': {
    about: 'the same with the meter killed at random moments, 20 rounds (EM-3, EM-7)',
    run: (seed) =>
      onMeter((stage) => meterCap(stage, { calls: 1_000, kills: { rounds: 20, seed } })),
  },
  'spawn-cap': {
    about: '1,000 acquires from 4 processes against max_agents 20 (SB-2, SB-6)',
    run: () => spawnCap({ acquires: 1_000 }),
  },
  'model-share': {
    about: 'CRITICAL, NORMAL and BACKGROUND at a model with one slot for 10 s (SUP-3)',
    run: () => onMeter((stage) => modelShare(stage, { forMs: 10_000 })),
  },
  'stream-abort': {
    about: 'how soon a provider sees that a stream was aborted (EM-8, EM-9)',
    run: () => onMeter((stage) => streamAbort(stage, { times: 50 })),
  },
  'gateway-kill': {
    about: '300 kill -9 of the gateway between intent and outcome of calls (TG-5)',
    run: (seed) => gatewayKill({ kills: 300, seed }),
  },
  flood: {
    about: '10,000 calls at once on one slow source, beside the calls of another (TG-6)',
    run: () => flood({ calls: 10_000, idleMs: 4_000 }),
  },
  'answered-then-killed': {
    about: 'workers killed after the provider answered (EM-7)',
    run: () => onMeter((stage) => answeredThenKilled(stage, { times: 20 })),
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
    about: '5,000 runs whose finish races with cancel, deadline, halt and preemption (RT-4, AG-7)',
    run: (seed) => races({ runs: 5_000, seed }),
  },
  sleepers: {
    about: '100,000 suspended runs: what they take of the worker, and how fast a signal wakes one',
    run: () => sleepers({ many: 100_000, wakes: 300 }),
  },
  'long-run': {
    about:
      'one run of 10,000 steps: the last cost what the first do, and it is resumed from few rows',
    run: () => longRun({ steps: 10_000 }),
  },
  'order-kills': {
    about:
      'the platform killed at each step of every order, and again while it recovers (SUP-8, SUP-9)',
    run: (seed) => orderKills({ furtherKills: 6, seed }),
  },
  'nats-down': {
    about:
      'NATS away for 60 s in the middle of 50 runs over two replicas of everything (HK-1, HK-2)',
    run: (seed) => natsDown({ seed, runs: 50, inFlight: 10, downMs: 60_000 }),
  },
  cuts: {
    about: 'the workers cut off from each of their peers in turn, 30 s each (SYS-4, RT-2)',
    run: (seed) => cuts({ seed, forMs: 30_000 }),
  },
  'shared-runs': {
    about: 'two workers share 200 runs, and what the second one adds (RT-2, SYS-5)',
    run: () => sharedRuns({ runs: 200 }),
  },
};

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string', default: '1' } },
});
const [name = ''] = positionals;
const chosen = Object.entries(PROOFS).filter(([known]) => name === 'all' || known === name);
if (chosen.length === 0) {
  console.log('npm run load -- NAME [--seed N]');
  for (const [known, { about }] of Object.entries(PROOFS)) {
    console.log(`  ${known.padEnd(20)}  ${about}`);
  }
  console.log(`  ${'all'.padEnd(20)}  one after the other`);
  process.exitCode = name === '' ? 0 : 1;
}
for (const [known, { run }] of chosen) {
  const started = performance.now();
  try {
    const figures = await run(Number(values.seed));
    const seconds = ((performance.now() - started) / 1_000).toFixed(1);
    console.log(`holds: ${known}, seed ${values.seed}, ${seconds} s`);
    for (const [figure, value] of Object.entries(figures)) console.log(`  ${figure}: ${value}`);
  } catch (error) {
    console.log(`FAILS: ${known}, seed ${values.seed}`);
    console.log(error);
    process.exitCode = 1;
  }
}

async function onMeter(proof: (stage: MeterStage) => Promise<Figures>): Promise<Figures> {
  const stage = await MeterStage.start();
  try {
    return await proof(stage);
  } finally {
    await stage.close();
  }
}
