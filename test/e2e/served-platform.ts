import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { createWritClient, type WritClient } from '@writ/client';
import { COMPILE_CACHE } from '../load/program.ts';

const MAIN = resolve(import.meta.dirname, '../../platform/src/main.ts');
const FREE_PORTS = Object.fromEntries(
  ['EDGE', 'SUPERVISOR', 'SPAWN_BUDGET', 'EXECUTION_METER', 'TOOL_GATEWAY', 'AGENT_WORKER'].map(
    (name) => [`WRIT_${name}_PORT`, '0'],
  ),
);

/** `npm start -- --no-demo` on a data folder: everything in one process, which serves until it is killed. */
export interface ServedPlatform {
  /** With the development key. */
  readonly client: WritClient;
  /** kill -9; resolves when it is gone. */
  kill(): Promise<void>;
}

/**
 * Starts an example's platform.
 * @param env settings beside the defaults
 */
export async function servePlatform(
  dataDir: string,
  example: string,
  env: Readonly<Record<string, string>> = {},
): Promise<ServedPlatform> {
  const child = spawn(process.execPath, [MAIN, '--no-demo', '--example', example], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      WRIT_DATA: dataDir,
      WRIT_LOG_LEVEL: 'error',
      ...FREE_PORTS,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const { baseUrl, apiKey } = await doorOf(child);
  return {
    client: createWritClient({ baseUrl, apiKey }),
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Where clients come in, as its output says; it may go on printing. */
function doorOf(child: ChildProcess): Promise<{ baseUrl: string; apiKey: string }> {
  return new Promise((found, fail) => {
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      const [, baseUrl] = /public +(http:\S+)/.exec(output) ?? [];
      const [, apiKey] = /API key +(\S+)/.exec(output) ?? [];
      if (baseUrl !== undefined && apiKey !== undefined) found({ baseUrl, apiKey });
    });
    child.once('exit', () => fail(new Error(`The platform ended before it was up:\n${output}`)));
  });
}
