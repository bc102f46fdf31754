import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const PREFIX = 'writ-test-postgres-';
const SETTING = 'WRIT_TEST_POSTGRES_RUN';
const STOP_WITHIN_MS = 5_000;

/** Returns the folder of the test run's PostgreSQL, the same for all processes of the run. */
export function postgresRunFolder(): string {
  return process.env[SETTING] ?? folderOf(process.pid);
}

/** Makes all child processes of this process share one PostgreSQL server, which starts on first use. */
export function setUpPostgresRun(): void {
  process.env[SETTING] = folderOf(process.pid);
}

/** Stops the server of this test run, if one was started, and deletes its data. */
export async function endPostgresRun(): Promise<void> {
  await stopServerIn(postgresRunFolder());
}

/** Stops servers that killed test runs left behind. */
export async function clearPostgresRuns(): Promise<void> {
  for (const name of readdirSync(postgresBase())) {
    const owner = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length)) : Number.NaN;
    if (Number.isInteger(owner) && !isAlive(owner)) await stopServerIn(join(postgresBase(), name));
  }
}

function folderOf(owner: number): string {
  return join(postgresBase(), `${PREFIX}${owner}`);
}

/**
 * Returns the parent folder of the server's data. For root it is /tmp, because the server then runs as another user,
 * which cannot read root's TMPDIR.
 */
export function postgresBase(): string {
  return process.getuid?.() === 0 ? '/tmp' : tmpdir();
}

async function stopServerIn(folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  const pidFile = join(folder, 'data', 'postmaster.pid');
  const pid = Number(contentOf(pidFile).split('\n')[0]);
  if (pid > 0 && isPostmaster(pid, folder)) {
    // SIGQUIT is an immediate shutdown; the data is deleted next.
    process.kill(pid, 'SIGQUIT');
    const until = performance.now() + STOP_WITHIN_MS;
    while (isAlive(pid) && performance.now() < until) await wait(10);
  }
  rmSync(folder, { recursive: true, force: true });
}

/** Content of a file, or empty when there is none: a server may remove its own file at any time. */
export function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    // ESRCH: a file of /proc whose process has just exited.
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}

/** Whether the process is the PostgreSQL server of `folder`, and not another program that reuses its pid. */
function isPostmaster(pid: number, folder: string): boolean {
  return contentOf(`/proc/${pid}/cmdline`).includes(folder);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Claims the start of the server; returns false when another process has claimed it. */
export function claimStart(folder: string): boolean {
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  try {
    mkdirSync(join(folder, 'starting'));
    return true;
  } catch {
    return false;
  }
}
