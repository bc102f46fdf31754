import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

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
  if (child.stdout === null) throw new Error('The process has no output.');
  const lines = createInterface({ input: child.stdout });
  const [line] = (await Promise.race([once(lines, 'line'), ended])) as [unknown];
  const address = /listens on (\S+)/.exec(String(line))?.[1];
  if (address === undefined) throw new Error(`The process did not start: ${String(line)}`);
  return {
    address,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
