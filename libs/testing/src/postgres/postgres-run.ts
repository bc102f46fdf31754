import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const PREFIX = 'writ-test-postgres-';
const SETTING = 'WRIT_TEST_POSTGRES_RUN';
const STOP_WITHIN_MS = 5_000;

/** Where a run of tests keeps its PostgreSQL, whichever of its processes starts it. */
export function postgresRunFolder(): string {
  return process.env[SETTING] ?? folderOf(process.pid);
}

/** Lets all processes that this one starts share one server, which is started when the first needs it. */
export function setUpPostgresRun(): void {
  process.env[SETTING] = folderOf(process.pid);
}

/** Stops the server of this run, if one was started, and deletes its data. */
export async function endPostgresRun(): Promise<void> {
  await stopServerIn(postgresRunFolder());
}

/** Stops what runs left behind that were killed. */
export async function clearPostgresRuns(): Promise<void> {
  for (const name of readdirSync(postgresBase())) {
    const owner = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length)) : Number.NaN;
    if (Number.isInteger(owner) && !isAlive(owner)) await stopServerIn(join(postgresBase(), name));
  }
}

function folderOf(owner: number): string {
  return join(postgresBase(), `${PREFIX}${owner}`);
}

/** Root's server runs as another user, who may not enter a folder that is root's alone. */
export function postgresBase(): string {
  return process.getuid?.() === 0 ? '/tmp' : tmpdir();
}

async function stopServerIn(folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  const pidFile = join(folder, 'data', 'postmaster.pid');
  const pid = existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8').split('\n')[0]) : 0;
  if (pid > 0 && isPostmaster(pid, folder)) {
    // "Immediate": nobody wants the data.
    process.kill(pid, 'SIGQUIT');
    const until = performance.now() + STOP_WITHIN_MS;
    while (isAlive(pid) && performance.now() < until) await wait(10);
  }
  rmSync(folder, { recursive: true, force: true });
}

/** A pid that was given to another program since must not be touched. */
function isPostmaster(pid: number, folder: string): boolean {
  const commandLine = `/proc/${pid}/cmdline`;
  return existsSync(commandLine) && readFileSync(commandLine, 'utf8').includes(folder);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Claims the start of the server; false when another process has. */
export function claimStart(folder: string): boolean {
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  try {
    mkdirSync(join(folder, 'starting'));
    return true;
  } catch {
    return false;
  }
}
