/** `npm run chaos -- --seed N --minutes M`: injects random faults under load and checks every invariant. */
import { parseArgs } from 'node:util';
import { runChaos } from './chaos.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '2' },
    'in-flight': { type: 'string', default: '6' },
    quiet: { type: 'boolean', default: false },
  },
});
const seed = Number(values.seed);
const title = `chaos, seed ${seed}, ${values.minutes} minutes`;
const { figures, violations, diagnostics } = await runChaos({
  seed,
  forMs: Number(values.minutes) * 60_000,
  inFlight: Number(values['in-flight']),
  ...(values.quiet ? {} : { log: (line: string) => console.log(`  ${line}`) }),
});
console.log(`${violations.length === 0 ? 'PASS' : 'FAIL'}: ${title}`);
for (const [figure, value] of Object.entries(figures)) {
  console.log(`  ${figure.padEnd(28)} ${value}`);
}
if (violations.length > 0) {
  console.log(`${violations.join('\n')}\n${diagnostics}`);
  process.exitCode = 1;
}
