/**
 * `npm run chaos -- --seed N --minutes M`: injects random faults under load and checks every invariant.
 * `--within SECONDS` (60): maximum time after the end of all faults until only waiting runs hold resources.
 * `--replicas N` (2): replicas of each service.
 */
import { parseArgs } from 'node:util';
import { runChaos } from './chaos.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '2' },
    'in-flight': { type: 'string', default: '6' },
    within: { type: 'string', default: '60' },
    replicas: { type: 'string', default: '2' },
    quiet: { type: 'boolean', default: false },
  },
});
// `exit` listeners also kill the processes of the platform.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(1));
const seed = Number(values.seed);
const startedAt = performance.now();
const seconds = () => ((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6);
const title = `chaos, seed ${seed}, ${values.minutes} minutes, ${values.replicas} replicas`;
const { figures, violations, diagnostics } = await runChaos({
  seed,
  forMs: Number(values.minutes) * 60_000,
  strandedWithinMs: Number(values.within) * 1_000,
  inFlight: Number(values['in-flight']),
  replicas: Number(values.replicas),
  ...(values.quiet ? {} : { log: (line: string) => console.log(`${seconds()}  ${line}`) }),
});
console.log(`${violations.length === 0 ? 'PASS' : 'FAIL'}: ${title}`);
for (const [figure, value] of Object.entries(figures)) {
  console.log(`  ${figure.padEnd(36)} ${value}`);
}
if (violations.length > 0) {
  console.log(`${violations.join('\n')}\n${diagnostics}`);
  process.exitCode = 1;
}
