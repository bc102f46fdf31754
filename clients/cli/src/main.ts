#!/usr/bin/env node
/** Entry point of the `writ` command. */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import './quiet-warnings.ts';

// Later commands use the compiled modules of earlier ones. A folder that is not writable has no effect.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/compiled'));
// Imported afterwards, because node:sqlite warns when it is loaded.
const { runCli } = await import('./cli.ts');
process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  print: (line) => console.log(line),
  warn: (line) => console.error(line),
});
