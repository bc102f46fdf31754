import { spawn } from 'node:child_process';
import { delimiter, join, resolve } from 'node:path';

/** Result of a command: its exit code and output, both streams in the order of arrival. */
export interface CommandResult {
  readonly code: number;
  readonly output: string;
}

/**
 * Runs a tool from `node_modules/.bin`, or else from the PATH, in the repository root, without a shell and without
 * standard input.
 *
 * @returns its exit code and output; a tool that cannot be started or was killed by a signal has the code 1
 */
export function runCommand(tool: string, ...args: readonly string[]): Promise<CommandResult> {
  return runCommandIn('.', tool, ...args);
}

/** Runs a tool like {@link runCommand}, in `folder` relative to the repository root. */
export function runCommandIn(
  folder: string,
  tool: string,
  ...args: readonly string[]
): Promise<CommandResult> {
  const root = resolve(import.meta.dirname, '..');
  // The `#!/usr/bin/env node` of tools must find the Node of this repository, not that of the machine.
  const PATH = [join(root, 'node_modules/.bin'), process.env.PATH].join(delimiter);
  return new Promise((done) => {
    const child = spawn(tool, args, {
      cwd: resolve(root, folder),
      env: { ...process.env, PATH },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
    const output = () => Buffer.concat(chunks).toString('utf8').trimEnd();
    child.on('error', (error) => done({ code: 1, output: `${tool}: ${error.message}` }));
    child.on('close', (code) => done({ code: code ?? 1, output: output() }));
  });
}
