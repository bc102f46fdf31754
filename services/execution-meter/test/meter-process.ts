import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { waitForLine } from '@writ/testing/processes';

/** An execution meter in its own process. */
export interface MeterProcess {
  readonly address: string;
  /** Kills the process with SIGKILL. */
  kill(): Promise<void>;
}

/** Starts main.ts with these variables and waits until it listens. */
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
