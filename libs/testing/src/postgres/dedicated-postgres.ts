import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { postgresBinaries } from './postgres-availability.ts';
import { postgresBase } from './postgres-run.ts';
import { initPostgres, launchPostgres, postgresUrl, serverUser } from './postgres-server.ts';

const TRUST_LOOPBACK = 'hostssl all all 127.0.0.1/32 trust\n';

/** A PostgreSQL server for one test, which may kill or pause it. */
export interface DedicatedPostgres {
  /** `host:port`, the same after a restart. */
  readonly address: string;
  /** URL of its database for the superuser, at `address` when given. */
  url(address?: string): string;
  /**
   * Sends SIGKILL to all its processes, or, with `fast`, does a fast shutdown, which terminates sessions.
   * Committed data stays for {@link DedicatedPostgres.start}.
   */
  kill(how?: 'killed' | 'fast'): Promise<void>;
  /** Sends a signal, such as SIGSTOP or SIGCONT, to each of its processes. */
  signal(signal: NodeJS.Signals): void;
  /** Starts it again with the same port and data. */
  start(): Promise<void>;
  /** Makes later sessions store new tables in this folder; the write-ahead log stays in the data folder. */
  keepTablesIn(folder: string): Promise<void>;
  /** Kills it and deletes its data. */
  stop(): Promise<void>;
}

/** TLS settings of a PostgreSQL server; files in PEM. */
export interface PostgresTls {
  readonly certFile: string;
  readonly keyFile: string;
  /** CA that verifies client certificates; default: the server requests none. */
  readonly caFile?: string;
  /** Contents of pg_hba.conf; default: trust TLS connections from the loopback interface. */
  readonly hba?: string;
}

/**
 * Starts a PostgreSQL server on a loopback port with a data folder of its own; with `tls` it requires TLS.
 * It runs without fsync: commits survive SIGKILL, but not a power loss.
 *
 * @param settings more settings of the server, for example `{ fsync: 'on' }`
 */
export async function startDedicatedPostgres(
  port: number,
  tls?: PostgresTls,
  settings: Readonly<Record<string, string>> = {},
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
    // Children first, so that none outlives the server.
    if (pid !== undefined) for (const each of [...childrenOf(pid), pid]) send(each, name);
  };
  const killAll = (): void => signal('SIGKILL');
  const start = async (): Promise<void> => {
    const all = { ...settings, ...(tls && tlsSettings(tls)) };
    const started = await launchPostgres(binaries, folder, port, all);
    server = started;
    // An interrupted test run leaves no process behind.
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
    keepTablesIn: (tables) => keepTablesIn(postgresUrl(port), tables),
    stop: async () => {
      await kill();
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

async function keepTablesIn(url: string, folder: string): Promise<void> {
  const as = await serverUser();
  const tables = join(folder, 'tables');
  mkdirSync(tables, { mode: 0o700 });
  if (as !== undefined) chownSync(tables, as.uid, as.gid);
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  try {
    await admin.query(`create tablespace small location '${tables}'`);
    await admin.query("alter role writ set default_tablespace = 'small'");
  } finally {
    await admin.end();
  }
}

/** Server settings for the files that {@link requireTls} copies. */
function tlsSettings({ caFile }: PostgresTls): Readonly<Record<string, string>> {
  return { ssl: 'on', ...(caFile !== undefined && { ssl_ca_file: 'root.crt' }) };
}

/** Installs the certificate and a pg_hba.conf that rejects connections without TLS. */
async function requireTls(
  folder: string,
  { certFile, keyFile, caFile, hba = TRUST_LOOPBACK }: PostgresTls,
): Promise<void> {
  const as = await serverUser();
  const data = join(folder, 'data');
  for (const [from, name] of [
    [certFile, 'server.crt'],
    [keyFile, 'server.key'],
    ...(caFile === undefined ? [] : [[caFile, 'root.crt'] as const]),
  ] as const) {
    const file = join(data, name);
    copyFileSync(from, file);
    chmodSync(file, 0o600);
    if (as !== undefined) chownSync(file, as.uid, as.gid);
  }
  writeFileSync(join(data, 'pg_hba.conf'), hba);
}

/**
 * Returns the pids of the child processes. They are signaled one by one, because each backend has its own process
 * session, which a signal to the process group does not reach.
 */
function childrenOf(parent: number): number[] {
  // Without /proc, backends cannot be paused; they still exit with their server.
  if (!existsSync('/proc')) return [];
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name);
    return Number.isInteger(pid) && parentOf(pid) === parent ? [pid] : [];
  });
}

function parentOf(pid: number): number | undefined {
  try {
    // The program name in parentheses may contain any character.
    const [, rest = ''] = /\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return Number(rest);
  } catch {
    // The process has exited.
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
