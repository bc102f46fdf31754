#!/usr/bin/env node
/** Entry point of the `writ` command. */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { EXIT } from './io.ts';
import './quiet-warnings.ts';

// Caches compiled modules for later commands; Node ignores the cache if the folder is not writable.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compiled'));
// Without this listener, console.log ignores errors of standard output.
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE') process.exit(EXIT.brokenPipe);
  console.error(`Standard output cannot be written (${code ?? message}).`);
  process.exit(EXIT.error);
});
// Imported dynamically, so that its modules are loaded after the call of enableCompileCache.
const { runCli } = await import('./cli.ts');
process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  print: (line) => console.log(line),
  warn: (line) => console.error(line),
});
