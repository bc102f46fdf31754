import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { natsBinary } from './nats-binary.ts';

/** A real nats-server with JetStream, in a process of its own and with a folder that goes with it. */
export interface NatsServer {
  /** `host:port`, the same after a restart. */
  readonly address: string;
  /** Ends it, by default with SIGKILL; what it stored stays for {@link NatsServer.start}. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Sends it a signal, such as SIGSTOP, after which it does nothing until SIGCONT. */
  signal(signal: NodeJS.Signals): void;
  /** Starts it again where it was. */
  start(): Promise<void>;
  /** Ends it and deletes its folder. */
  stop(): Promise<void>;
}

/** How a test server is started. */
export interface NatsServerOptions {
  /** More configuration, such as users; it must not set listen and jetstream. */
  readonly config?: string;
  /** For variables in the configuration. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: one that the system chooses. */
  readonly port?: number;
}

/** Starts a nats-server on a free loopback port, and resolves when it listens. */
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
  // A run that is interrupted leaves nothing behind.
  const killChild = () => child.kill('SIGKILL');
  process.once('exit', killChild);
  child.once('exit', () => process.off('exit', killChild));
  const said: string[] = [];
  const ready = Promise.withResolvers<number>();
  let listening: number | undefined;
  const lines = createInterface({ input: child.stderr });
  lines.on('line', (line) => {
    said.push(line);
    const match = /Listening for client connections on \S+:(\d+)/.exec(line);
    if (match !== null) listening = Number(match[1]);
    if (line.includes('Server is ready') && listening !== undefined) ready.resolve(listening);
  });
  child.once('error', ready.reject);
  child.once('exit', () => ready.reject(new Error(`nats-server ended:\n${said.join('\n')}`)));
  return { child, port: await ready.promise };
}
