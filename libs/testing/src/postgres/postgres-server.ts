import { type ChildProcess, execFile, spawn } from 'node:child_process';
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePorts } from '../processes/free-ports.ts';
import { claimStart, contentOf, postgresRunFolder } from './postgres-run.ts';

const run = promisify(execFile);
const START_WITHIN_MS = 60_000;
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '300',
  // Test data need not survive a power loss.
  fsync: 'off',
  full_page_writes: 'off',
  shared_buffers: '32MB',
  // Shared memory is in the data folder, which is deleted; in /dev/shm it would remain when a server is killed.
  dynamic_shared_memory_type: 'mmap',
  log_min_messages: 'warning',
};

/** Returns the URL of the test run's server; the first process of the run to call this starts it. */
export async function startedPostgres(binaries: string): Promise<string> {
  const folder = postgresRunFolder();
  const ready = join(folder, 'url');
  const failed = join(folder, 'failed');
  if (claimStart(folder)) {
    try {
      writeFileSync(`${ready}.new`, await startServer(binaries, folder));
      writeFileSync(ready, readFileSync(`${ready}.new`));
    } catch (error) {
      writeFileSync(failed, String(error));
    }
  }
  const until = performance.now() + START_WITHIN_MS;
  while (performance.now() < until) {
    if (existsSync(failed)) break;
    const url = contentOf(ready);
    if (url.endsWith('/postgres')) return url;
    await wait(20);
  }
  const reason = existsSync(failed) ? readFileSync(failed, 'utf8') : 'it did not start in time';
  throw new Error(`PostgreSQL for tests is not available: ${reason}`);
}

async function startServer(binaries: string, folder: string): Promise<string> {
  await initPostgres(binaries, folder);
  const [port = 0] = await freePorts(1);
  const server = await launchPostgres(binaries, folder, port);
  // The server outlives the process that starts it.
  server.unref();
  return postgresUrl(port);
}

/** Initializes a data folder with initdb. */
export async function initPostgres(binaries: string, folder: string): Promise<void> {
  const as = await serverUser();
  const data = join(folder, 'data');
  mkdirSync(data, { mode: 0o700 });
  if (as !== undefined) chownSync(data, as.uid, as.gid);
  const init = ['-D', data, '-U', 'writ', '-A', 'trust', '-E', 'UTF8', '--no-sync'];
  // ICU collation, a common choice in production, does not sort by code point.
  const locale = ['--locale-provider=icu', '--icu-locale=en-US', '--locale=C.UTF-8'];
  await run(join(binaries, 'initdb'), [...init, ...locale], { cwd: data, ...as });
}

/** Starts the server of a data folder; resolves when it accepts connections. */
export async function launchPostgres(
  binaries: string,
  folder: string,
  port: number,
  settings: Readonly<Record<string, string>> = {},
): Promise<ChildProcess> {
  const as = await serverUser();
  const data = join(folder, 'data');
  const set = Object.entries({ ...SETTINGS, ...settings, port: String(port) });
  const log = openSync(join(folder, 'log'), 'a');
  const server = spawn(
    join(binaries, 'postgres'),
    ['-D', data, ...set.flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    { cwd: data, ...as, detached: true, stdio: ['ignore', log, log] },
  );
  closeSync(log);
  await accepting(server, join(data, 'postmaster.pid'), join(folder, 'log'));
  return server;
}

/** Returns the superuser's URL of a server on this machine. */
export function postgresUrl(port: number): string {
  return `postgres://writ@127.0.0.1:${port}/postgres`;
}

/** Values of the eighth line of the pid file while the server accepts connections. */
const ACCEPTING = ['ready', 'standby'];

/** Waits until the server accepts connections; throws an error with its log when it exits or does not start in time. */
async function accepting(server: ChildProcess, pidFile: string, log: string): Promise<void> {
  const until = performance.now() + START_WITHIN_MS;
  while (performance.now() < until && server.exitCode === null && server.signalCode === null) {
    // The pid file of a killed server remains until the next server overwrites it.
    const lines = contentOf(pidFile).split('\n');
    if (lines[0] === String(server.pid) && ACCEPTING.includes(lines[7]?.trim() ?? '')) return;
    await wait(10);
  }
  throw new Error(readFileSync(log, 'utf8'));
}

/** Returns the user to run as when this process is root, because PostgreSQL refuses to run as root. */
export async function serverUser(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ['postgres', 'nobody']) {
    const ids = await Promise.all(['-u', '-g'].map((what) => idOf(name, what)));
    const [uid, gid] = ids;
    if (uid !== undefined && gid !== undefined) return { uid, gid };
  }
  throw new Error('neither user "postgres" nor user "nobody" exists to run PostgreSQL as');
}

async function idOf(name: string, what: string): Promise<number | undefined> {
  const answer = await run('id', [what, name]).catch(() => undefined);
  return answer === undefined ? undefined : Number(answer.stdout);
}
