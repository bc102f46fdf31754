/** `npm run chaos -- --seed N --minutes M`: everything fails for a while, and nothing that is promised breaks. */
import { parseArgs } from 'node:util';
import { chaos } from './chaos.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '2' },
    'in-flight': { type: 'string', default: '6' },
    quiet: { type: 'boolean', default: false },
  },
});
const seed = Number(values.seed);
try {
  const figures = await chaos({
    seed,
    forMs: Number(values.minutes) * 60_000,
    inFlight: Number(values['in-flight']),
    ...(values.quiet ? {} : { say: (line: string) => console.log(`  ${line}`) }),
  });
  console.log(`holds: chaos, seed ${seed}, ${values.minutes} minutes`);
  for (const [figure, value] of Object.entries(figures)) {
    console.log(`  ${figure.padEnd(28)} ${value}`);
  }
} catch (error) {
  console.log(`FAILS: chaos, seed ${seed}, ${values.minutes} minutes`);
  console.log(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
