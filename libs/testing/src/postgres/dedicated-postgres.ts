import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { postgresBinaries } from './postgres-binaries.ts';
import { postgresBase } from './postgres-run.ts';
import { initPostgres, launchPostgres, postgresUrl } from './postgres-server.ts';
import { type PostgresTls, requireTls, tlsSettings } from './postgres-tls.ts';

/** A PostgreSQL that one test has to itself, so that it may be killed and frozen. */
export interface DedicatedPostgres {
  /** `host:port`, the same after a restart. */
  readonly address: string;
  /** The address of its database for the superuser; by way of `address` when one is given. */
  url(address?: string): string;
  /**
   * kill -9 of every process of it, or, `fast`, as an administrator stops it: sessions are ended where they
   * are. What it committed stays for {@link DedicatedPostgres.start}.
   */
  kill(how?: 'killed' | 'fast'): Promise<void>;
  /** Sends each of its processes a signal, such as SIGSTOP, or SIGCONT. */
  signal(signal: NodeJS.Signals): void;
  /** Starts it again where it was. */
  start(): Promise<void>;
  /** Ends it and deletes its data. */
  stop(): Promise<void>;
}

/**
 * Starts a PostgreSQL on a loopback port with data of its own; with `tls` it takes no connection without. It does not wait for the disk: its
 * commits live through kill -9, not through a power cut.
 */
export async function startDedicatedPostgres(
  port: number,
  tls?: PostgresTls,
): Promise<DedicatedPostgres> {
  const binaries = postgresBinaries();
  if (binaries === undefined) throw new Error('PostgreSQL is not installed');
  const folder = mkdtempSync(join(postgresBase(), 'writ-dedicated-postgres-'));
  chmodSync(folder, 0o755);
  await initPostgres(binaries, folder);
  if (tls !== undefined) await requireTls(folder, tls);
  let server: ChildProcess | undefined;
  const signal = (name: NodeJS.Signals): void => {
    const { pid } = server ?? {};
    // The children first: nobody then starts more of them, and none outlives the server.
    if (pid !== undefined) for (const each of [...childrenOf(pid), pid]) send(each, name);
  };
  const killAll = (): void => signal('SIGKILL');
  const start = async (): Promise<void> => {
    const started = await launchPostgres(binaries, folder, port, tls && tlsSettings(tls));
    server = started;
    // A run that is interrupted leaves nothing behind.
    process.once('exit', killAll);
    started.once('exit', () => {
      process.off('exit', killAll);
      if (server === started) server = undefined;
    });
  };
  const kill = async (how: 'killed' | 'fast' = 'killed'): Promise<void> => {
    if (server === undefined) return;
    const ended = once(server, 'exit');
    if (how === 'fast') server.kill('SIGINT');
    else killAll();
    await ended;
  };
  await start();
  return {
    address: `127.0.0.1:${port}`,
    url: (address) =>
      address === undefined
        ? postgresUrl(port)
        : postgresUrl(port).replace(`127.0.0.1:${port}`, address),
    kill,
    signal,
    start,
    stop: async () => {
      await kill();
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** Each backend leads a session of its own, so that a signal to a group reaches none of them. */
function childrenOf(parent: number): number[] {
  // Systems without it have no backends to be frozen here; they end with their server anyway.
  if (!existsSync('/proc')) return [];
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    return Number.isInteger(pid) && parentOf(pid) === parent ? [pid] : [];
  });
}

function parentOf(pid: number): number | undefined {
  try {
    // What stands in brackets is the program's name, which may hold anything.
    const [, rest = ''] = /\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return Number(rest);
  } catch {
    // It has ended meanwhile.
    return undefined;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
