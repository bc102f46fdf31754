import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Path of "everything", the MCP reference server that implements every feature of the protocol. */
export const EVERYTHING = fileURLToPath(
  import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'),
);

/** A server over streamable HTTP on loopback. */
export interface HttpServer {
  readonly url: string;
  readonly process: ChildProcess;
  stop(): Promise<void>;
}

/** Starts the server on a free port, or on `port`. */
export async function serveEverything(port = 0): Promise<HttpServer> {
  const preload = new URL('./listen-on-loopback.ts', import.meta.url).href;
  const process = spawn(
    globalThis.process.execPath,
    ['--import', preload, EVERYTHING, 'streamableHttp'],
    {
      env: {
        NODE_COMPILE_CACHE: globalThis.process.env.NODE_COMPILE_CACHE,
        PORT: String(port),
      },
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  const lines = createInterface({ input: process.stdout });
  let listening = '';
  for await (const line of lines) {
    listening = /^port (\d+)$/.exec(line)?.[1] ?? '';
    if (listening !== '') break;
  }
  process.stdout.resume();
  return {
    url: `http://127.0.0.1:${listening}/mcp`,
    process,
    stop: async () => {
      if (process.exitCode !== null || process.signalCode !== null) return;
      process.kill('SIGKILL');
      await once(process, 'exit');
    },
  };
}
