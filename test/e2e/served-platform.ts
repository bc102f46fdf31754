import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { createWritClient, type WritClient } from '@writ/client';
import { COMPILE_CACHE } from '../load/program.ts';

const MAIN = resolve(import.meta.dirname, '../../platform/src/main.ts');
const FREE_PORTS = Object.fromEntries(
  [
    'EDGE',
    'SUPERVISOR',
    'SPAWN_BUDGET',
    'EXECUTION_METER',
    'TOOL_GATEWAY',
    'AGENT_WORKER',
    'AGENT_PROXY',
    'AGENT_PROXY_ENDPOINT',
  ].map((name) => [`WRIT_${name}_PORT`, '0']),
);

/** `npm start -- --no-demo` on a data folder, in one child process. */
export interface ServedPlatform {
  /** A client with the development key. */
  readonly client: WritClient;
  /** Base URL of the model endpoint for external agents. */
  readonly modelBaseUrl: string;
  /** Sends SIGKILL; resolves when the process has exited. */
  kill(): Promise<void>;
}

/**
 * Starts the platform of an example.
 * @param env additional settings
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
  const { baseUrl, modelBaseUrl, apiKey } = await endpointOf(child);
  return {
    client: createWritClient({ baseUrl, apiKey }),
    modelBaseUrl,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

interface Endpoint {
  readonly baseUrl: string;
  readonly modelBaseUrl: string;
  readonly apiKey: string;
}

/** Reads the URLs and the API key from the output. */
function endpointOf(child: ChildProcess): Promise<Endpoint> {
  return new Promise((found, fail) => {
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      const [, baseUrl] = /public +(http:\S+)/.exec(output) ?? [];
      const [, apiKey] = /API key +(\S+)/.exec(output) ?? [];
      const [, modelBaseUrl] = /models +(http:\S+)/.exec(output) ?? [];
      if (baseUrl === undefined || modelBaseUrl === undefined || apiKey === undefined) return;
      found({ baseUrl, modelBaseUrl, apiKey });
    });
    child.once('exit', () =>
      fail(new Error(`The platform exited before it printed its URL and API key:\n${output}`)),
    );
  });
}
