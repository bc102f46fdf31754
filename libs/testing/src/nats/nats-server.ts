import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';

let reported = false;

/**
 * Whether nats-server is installed. When it is not, reports that once on standard error, or fails with
 * WRIT_REQUIRE_SERVICES=1.
 * @throws Error naming the missing package
 */
export function isNatsAvailable(): boolean {
  if (natsBinary() !== undefined) return true;
  const missing = 'nats-server is not installed (Debian: apt-get install nats-server)';
  if (process.env.WRIT_REQUIRE_SERVICES === '1') throw new Error(`${missing}; tests require it.`);
  // The reporter hides the console output of tests that pass, but not standard error.
  if (!reported) process.stderr.write(`skipped: tests that use NATS, because ${missing}\n`);
  reported = true;
  return false;
}

/** A nats-server process with JetStream and a temporary folder. */
export interface NatsServer {
  /** `host:port`, the same after a restart. */
  readonly address: string;
  /** Kills it, by default with SIGKILL; its stored data stays for {@link NatsServer.start}. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Sends it a signal, such as SIGSTOP or SIGCONT. */
  signal(signal: NodeJS.Signals): void;
  /** Starts it again with the same port and data. */
  start(): Promise<void>;
  /** Kills it and deletes its folder. */
  stop(): Promise<void>;
}

/** Options of {@link startNatsServer}. */
export interface NatsServerOptions {
  /** Additional configuration, such as users; it must not set `listen` or `jetstream`. */
  readonly config?: string;
  /** Values of variables in the configuration. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: a port that the system assigns. */
  readonly port?: number;
}

/** Starts a nats-server on the loopback interface; resolves when it listens. */
export async function startNatsServer(options: NatsServerOptions = {}): Promise<NatsServer> {
  const binary = natsBinary();
  if (binary === undefined) throw new Error('nats-server is not installed');
  const folder = await mkdtemp(join(tmpdir(), 'writ-nats-'));
  let running = await launch(binary, folder, options.port ?? -1, options);
  const { port } = running;
  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    const { child } = running;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  };
  return {
    address: `127.0.0.1:${port}`,
    kill,
    signal: (signal) => void running.child.kill(signal),
    start: async () => {
      running = await launch(binary, folder, port, options);
    },
    stop: async () => {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function launch(
  binary: string,
  folder: string,
  port: number,
  { config = '', env = {} }: NatsServerOptions,
): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const file = join(folder, 'nats-server.conf');
  const own = `listen: "127.0.0.1:${port}"\njetstream { store_dir: ${JSON.stringify(folder)} }\n`;
  await writeFile(file, own + config);
  const child = spawn(binary, ['-c', file], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  // An interrupted test run leaves no process behind.
  const killChild = () => child.kill('SIGKILL');
  process.once('exit', killChild);
  child.once('exit', () => process.off('exit', killChild));
  const output: string[] = [];
  const ready = Promise.withResolvers<number>();
  let listening: number | undefined;
  const lines = createInterface({ input: child.stderr });
  lines.on('line', (line) => {
    output.push(line);
    const match = /Listening for client connections on \S+:(\d+)/.exec(line);
    if (match !== null) listening = Number(match[1]);
    if (line.includes('Server is ready') && listening !== undefined) ready.resolve(listening);
  });
  child.once('error', ready.reject);
  child.once('exit', () => ready.reject(new Error(`nats-server exited:\n${output.join('\n')}`)));
  return { child, port: await ready.promise };
}

/** Returns the nats-server that WRIT_NATS_SERVER names, or the one on the PATH; undefined when there is none. */
function natsBinary(): string | undefined {
  const named = process.env.WRIT_NATS_SERVER;
  if (named !== undefined && named !== '') return named;
  // Debian installs servers into folders that are only on root's PATH.
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  return folders.map((folder) => join(folder, 'nats-server')).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
