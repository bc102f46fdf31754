import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { isNatsAvailable, startNatsServer } from '@writ/testing/nats';
import { waitForLine } from '@writ/testing/processes';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';

/** A service process whose shutdown never ends. */
const HANGING = `
  import { runService } from ${JSON.stringify(join(import.meta.dirname, 'index.ts'))};
  const service = {
    name: 'spawn-budget', address: 'nowhere:1', commits: 0,
    start: async () => setInterval(() => undefined, 1_000),
    stop: () => { console.log('stopping'); return new Promise(() => undefined); },
  };
  await runService({ name: 'spawn-budget', read: () => ({ dataDir: '', store: { dialect: 'postgres' } }), create: async () => service });
`;

/** A service process whose service fails to close. */
const BROKEN = `
  import { runService } from ${JSON.stringify(join(import.meta.dirname, 'index.ts'))};
  const service = {
    name: 'spawn-budget', address: 'nowhere:1', commits: 0,
    start: async () => undefined,
    stop: async () => { throw new Error('It does not close.'); },
  };
  await runService({ name: 'spawn-budget', read: () => ({ dataDir: '', store: { dialect: 'postgres' } }), create: async () => service });
`;

it.skipIf(!isNatsAvailable())(
  'a service process exits and reports the error if the service fails to close (SYS-4)',
  async () => {
    const nats = await startNatsServer();
    onTestFinished(() => nats.stop());
    const child = spawn(process.execPath, ['--input-type=module', '-e', BROKEN], {
      env: {
        PATH: process.env.PATH,
        WRIT_LOG_LEVEL: 'silent',
        WRIT_NATS_URL: `nats://${nats.address}`,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    // `close` is emitted after all output has been read.
    const ended = once(child, 'close');
    let output = '';
    child.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stdout.once('data', () => child.kill('SIGTERM'));
    expect(await ended).toEqual([1, null]);
    expect(output).toBe('It does not close.\n');
  },
);

describe('a service process that receives SIGTERM', () => {
  let child: ChildProcess;
  afterEach(() => child.kill('SIGKILL'));

  it('drains at the first signal and exits at once at the second (SYS-4)', async () => {
    child = spawn(process.execPath, ['--input-type=module', '-e', HANGING], {
      env: { PATH: process.env.PATH, WRIT_LOG_LEVEL: 'silent' },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const ended = once(child, 'exit');
    const stopping = waitForLine(child, /stopping/);
    await waitForLine(child, /listens on nowhere:1/);
    child.kill('SIGTERM');
    await stopping;
    expect(child.exitCode).toBeNull();
    child.kill('SIGTERM');
    expect(await ended).toEqual([1, null]);
  });
});
