/** `npm run bench` lists the benches, `npm run bench -- NAME` runs one. */
import { parseArgs } from 'node:util';
import { bench, type Subject } from './bench.ts';
import { meter } from './meter.ts';
import { spawn } from './spawn.ts';

const BENCHES: Readonly<Record<string, { readonly about: string; readonly subject: Subject }>> = {
  meter: { about: 'Reserve and Settle of execution-meter', subject: meter },
  spawn: { about: 'Acquire and Release of spawn-budget', subject: spawn },
};

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { 'cpu-prof-dir': { type: 'string' } },
});
const [name = ''] = positionals;
const chosen = BENCHES[name];
if (chosen === undefined) {
  console.log('npm run bench -- NAME [--cpu-prof-dir FOLDER]');
  for (const [known, { about }] of Object.entries(BENCHES)) {
    console.log(`  ${known.padEnd(6)} ${about}, beside the floor that it stands on`);
  }
  process.exitCode = name === '' ? 0 : 1;
} else {
  const isEnough = await bench(chosen.subject, { profileDir: values['cpu-prof-dir'] });
  process.exitCode = isEnough ? 0 : 1;
}
