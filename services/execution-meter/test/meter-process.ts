import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { waitForLine } from '@writ/testing/processes';

/** An execution meter in a process of its own. */
export interface MeterProcess {
  readonly address: string;
  /** kill -9. */
  kill(): Promise<void>;
}

/** Starts the meter's own main with these settings, and waits until it listens. */
export async function startMeterProcess(env: Record<string, string>): Promise<MeterProcess> {
  const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));
  const child: ChildProcess = spawn(process.execPath, [main], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const [, address = ''] = await waitForLine(child, /listens on (\S+)/);
  return {
    address,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
