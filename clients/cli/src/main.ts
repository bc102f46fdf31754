#!/usr/bin/env node
/** Entry point of the `writ` command. */
import { runCli } from './cli.ts';

process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  print: (line) => console.log(line),
  warn: (line) => console.error(line),
});
