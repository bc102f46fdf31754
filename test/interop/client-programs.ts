import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { findInteropClients } from '../../scripts/interop-clients.ts';

const found = findInteropClients();
if ('missing' in found) {
  const notice = `The clients of other projects are not tested: ${found.missing}`;
  if (process.env.WRIT_REQUIRE_TOOLCHAINS === '1') throw new Error(notice);
  process.stderr.write(`skipped: ${notice}\n`);
}

/** Whether the pinned clients of other projects are installed. */
export const HAS_CLIENTS = 'folder' in found;

const { folder, python } = 'missing' in found ? { folder: '', python: '' } : found;

/** Runs a program of test/interop/clients to its end; of this environment it inherits only PATH. */
export function runClient(program: string, env: Readonly<Record<string, string>>) {
  const command = program.endsWith('.py') ? python : process.execPath;
  return new Promise<{ code: number | null; output: string }>((resolve, reject) => {
    const child = spawn(command, [join(folder, program)], {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        // Their telemetry would leave this machine.
        OPENAI_AGENTS_DISABLE_TRACING: '1',
        LANGSMITH_TRACING: 'false',
        ...env,
      },
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let output = '';
    child.stdout.on('data', (part) => (output += part));
    child.stderr.on('data', (part) => (output += part));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}
