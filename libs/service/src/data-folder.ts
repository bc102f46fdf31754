import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import {
  InvalidRequestError,
  inheritFolderOwner,
  inheritOwner,
  PreconditionError,
} from '@writ/kernel';

/** The lock of a data folder; one process has it at a time. */
export interface DataFolderLock {
  /** Releases the lock. The operating system also releases it when the process exits or crashes. */
  release(): void;
}

/** How long a new owner may take to write its process id, ms. */
const PID_WAIT_MS = 1_000;
const PID_POLL_MS = 20;

interface LockFile {
  readonly pidFile: string;
  readonly database: DatabaseSync;
}

/**
 * All locks held by this process. If a lock were not referenced, the garbage collector would close its database and
 * thereby release the lock.
 */
const held = new Set<LockFile>();

/**
 * Creates the data folder if it does not exist, and locks it for these services (SYS-5). The operating system holds the
 * locks and releases them when the process ends, so a lock is never stale, and only one of two processes that start at
 * the same time acquires it. Processes of different services can share a folder; processes that have a service in
 * common, such as two platforms, cannot.
 *
 * @throws InvalidRequestError INVALID_FILE: the folder cannot be created or written
 * @throws PreconditionError DATA_FOLDER_LOCKED naming the process that uses it
 */
export async function lockDataFolder(
  dataDir: string,
  services: readonly string[],
): Promise<DataFolderLock> {
  createDataFolder(dataDir);
  const folder = join(dataDir, 'locks');
  const locks: LockFile[] = [];
  const release = (): void => {
    for (const lock of locks.splice(0)) {
      rmSync(lock.pidFile, { force: true });
      lock.database.close();
      held.delete(lock);
    }
  };
  try {
    for (const service of services) {
      const pidFile = join(folder, `${service}.pid`);
      const database = tryLock(dataDir, join(folder, `${service}.lock`));
      if (database === undefined) {
        // Released before waiting for the process id of the owner.
        release();
        throw locked(dataDir, await ownerOf(pidFile));
      }
      const lock = { pidFile, database };
      locks.push(lock);
      held.add(lock);
      writePid(dataDir, pidFile);
    }
  } catch (error) {
    release();
    throw error;
  }
  return { release };
}

/** Writes the id of this process atomically, so that a reader never sees a partial number. */
function writePid(dataDir: string, pidFile: string): void {
  try {
    writeFileSync(`${pidFile}.tmp`, `${process.pid}\n`, { mode: 0o600 });
    renameSync(`${pidFile}.tmp`, pidFile);
  } catch (error) {
    throw unusable(dataDir, `${pidFile} cannot be written`, error);
  }
}

/**
 * Creates the data folder if it does not exist.
 * @throws InvalidRequestError INVALID_FILE: the folder cannot be created
 */
export function createDataFolder(dataDir: string): void {
  try {
    createFolder(join(resolve(dataDir), 'locks'));
  } catch (error) {
    const code = codeOf(error);
    const isFile = code === 'EEXIST' || code === 'ENOTDIR';
    throw unusable(dataDir, isFile ? 'the path or one of its parents is a file' : code, error);
  }
}

/**
 * Creates a folder and its parents. Node's `mkdirSync` with `recursive` never returns if the folder cannot be created,
 * as in /proc.
 */
function createFolder(folder: string): void {
  if (existsSync(folder)) return;
  if (dirname(folder) !== folder) createFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
    inheritFolderOwner(folder);
  } catch (error) {
    // Another process has created it.
    if (codeOf(error) !== 'EEXIST' || !statSync(folder).isDirectory()) throw error;
  }
}

/**
 * Acquires the write lock of a SQLite database, because Node has no function for advisory file locks. Returns undefined
 * if another process holds the lock. The database file stays empty and is not deleted, because another process may be
 * opening it.
 */
function tryLock(dataDir: string, file: string): DatabaseSync | undefined {
  let database: DatabaseSync | undefined;
  try {
    createLockFile(file);
    database = new DatabaseSync(file, { timeout: 0 });
    database.exec('BEGIN IMMEDIATE');
    return database;
  } catch (error) {
    database?.close();
    if (isBusy(error)) return undefined;
    throw unusable(dataDir, `${file} cannot be locked`, error);
  }
}

/** Creates the file for the owner of the folder, so that a service can lock the file after root has created it. */
function createLockFile(file: string): void {
  let handle: number;
  try {
    handle = openSync(file, 'ax', 0o600);
  } catch {
    // The file already exists, or SQLite reports the error when it opens the file.
    return;
  }
  try {
    inheritOwner(handle, file);
  } finally {
    closeSync(handle);
  }
}

/** Returns the id of the process that holds the lock; undefined if the process does not write its id in time. */
async function ownerOf(pidFile: string): Promise<number | undefined> {
  const deadline = performance.now() + PID_WAIT_MS;
  for (;;) {
    const pid = readPid(pidFile);
    // The id of a killed owner stays in the file until the next owner replaces it.
    if (pid !== undefined && isAlive(pid)) return pid;
    if (performance.now() >= deadline) return undefined;
    await delay(PID_POLL_MS);
  }
}

function readPid(pidFile: string): number | undefined {
  try {
    const pid = Number(readFileSync(pidFile, 'utf8'));
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process exists but belongs to another user.
    return codeOf(error) === 'EPERM';
  }
}

function unusable(dataDir: string, why: string, cause: unknown): InvalidRequestError {
  return new InvalidRequestError(
    'INVALID_FILE',
    `The data folder ${dataDir} cannot be used: ${why}; set WRIT_DATA to a writable folder.`,
    { file: dataDir },
    { cause },
  );
}

function locked(dataDir: string, pid: number | undefined): PreconditionError {
  const owner = pid === undefined ? 'another process' : `process ${pid}`;
  return new PreconditionError(
    'DATA_FOLDER_LOCKED',
    `The data folder ${dataDir} is in use by ${owner}; stop that process, or set WRIT_DATA to another folder.`,
    { file: dataDir, ...(pid !== undefined && { pid: String(pid) }) },
  );
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === 5;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
