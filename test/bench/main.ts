/** `npm run bench` lists the benchmarks; `npm run bench -- NAME` runs one. */
import { parseArgs } from 'node:util';
import { benchActiveAgents } from './active-agents.ts';
import { benchAgentProxy } from './agent-proxy.ts';
import { type BenchOptions, bench } from './bench.ts';
import { benchDistributed } from './distributed.ts';
import { meter } from './meter.ts';
import { benchPeers } from './peers.ts';
import { benchReplicas } from './replicas.ts';
import { benchReview } from './review.ts';
import { benchScale } from './scale.ts';
import { spawn } from './spawn.ts';
import { benchSteps } from './steps.ts';
import { benchTool } from './tool.ts';
import { benchTwoStep } from './two-step.ts';
import { benchWriters } from './writers.ts';

interface Bench {
  readonly about: string;
  /** Resolves with whether the figures are within the limits of the benchmark. */
  run(options: BenchOptions): Promise<boolean>;
}

const BENCHES: Readonly<Record<string, Bench>> = {
  meter: {
    about: 'Reserve and Settle of execution-meter',
    run: (options) => bench(meter, options),
  },
  spawn: {
    about: 'Acquire and Release of spawn-budget',
    run: (options) => bench(spawn, options),
  },
  review: {
    about: 'ReviewAction of supervisor with fifty rules',
    run: benchReview,
  },
  steps: { about: 'a governed step of a react agent, through all services', run: benchSteps },
  'two-step': {
    about: 'a two-step run on the embedded platform',
    run: benchTwoStep,
  },
  'active-agents': {
    about: 'the overhead of a step with up to 1,000 agents at once and a model that takes 2 s',
    run: benchActiveAgents,
  },
  distributed: {
    about: 'two-step runs on one process for each service, with PostgreSQL and NATS',
    run: benchDistributed,
  },
  peers: { about: 'a two-step run through Writ and through other libraries', run: benchPeers },
  'agent-proxy': {
    about: 'the time to the first byte of a model call through agent-proxy',
    run: benchAgentProxy,
  },
  tool: { about: 'CallTool of tool-gateway on a tool that does nothing', run: benchTool },
  replicas: {
    about: 'two-step runs with one and with two replicas of each service',
    run: benchReplicas,
  },
  writers: {
    about: 'transactions on PostgreSQL, with one lock and with a lock for each run',
    run: benchWriters,
  },
  scale: {
    about: 'a simulation of writing processes, checked against measurements of 2 and 4 processes',
    run: benchScale,
  },
};

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    'cpu-prof-dir': { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    out: { type: 'string' },
    portkey: { type: 'boolean' },
    litellm: { type: 'boolean' },
  },
});
const [name = ''] = positionals;
const chosen = BENCHES[name];
if (chosen === undefined) {
  console.log('npm run bench -- NAME [--cpu-prof-dir FOLDER]');
  console.log('npm run bench -- agent-proxy [--rounds N] [--portkey] [--litellm] [--out FOLDER]');
  console.log('npm run bench -- active-agents [--out FOLDER]');
  console.log(
    'npm run bench -- two-step|distributed|peers|replicas|writers|scale [--rounds N] [--seconds N] [--out FOLDER]',
  );
  for (const [known, { about }] of Object.entries(BENCHES)) {
    console.log(`  ${known.padEnd(13)} ${about}`);
  }
  process.exitCode = name === '' ? 0 : 1;
} else {
  const { 'cpu-prof-dir': profileDir, rounds, seconds, out: outDir, portkey, litellm } = values;
  const isEnough = await chosen.run({
    profileDir,
    outDir,
    portkey,
    litellm,
    ...(rounds !== undefined && { rounds: Number(rounds) }),
    ...(seconds !== undefined && { seconds: Number(seconds) }),
  });
  process.exitCode = isEnough ? 0 : 1;
}
