import { type ChildProcess, spawn } from 'node:child_process';
import { expect, it, onTestFinished } from 'vitest';
import { waitForLine } from './wait-for-line.ts';

function run(script: string): ChildProcess {
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

it('finds a line among others, even when it arrives in pieces', async () => {
  const child = run(`
    process.stdout.write('warming up\\nserver list');
    setTimeout(() => process.stdout.write('ens on 127.0.0.1:1\\n'), 50);
    setInterval(() => undefined, 1_000);`);
  expect((await waitForLine(child, /listens on (\S+)/))[1]).toBe('127.0.0.1:1');
});

it('rejects when the child exits or cannot be started', async () => {
  const child = run(`console.log('The port is in use.'); process.exit(3);`);
  await expect(waitForLine(child, /listens/)).rejects.toThrow(/\(3\)[\s\S]*The port is in use/);
  const missing = spawn('/no/such/program', { stdio: ['ignore', 'pipe', 'ignore'] });
  await expect(waitForLine(missing, /listens/)).rejects.toThrow('ENOENT');
});

it('finds a line that is written right before the exit', async () => {
  expect((await waitForLine(run(`console.log('done 7')`), /done (\d)/))[1]).toBe('7');
});
