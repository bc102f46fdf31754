#!/usr/bin/env node
/** Entry point of the `writ` command. */
import './quiet-warnings.ts';

// Imported afterwards, because node:sqlite warns when it is loaded.
const { runCli } = await import('./cli.ts');
process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  print: (line) => console.log(line),
  warn: (line) => console.error(line),
});
