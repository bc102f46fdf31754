import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConflictError, createPrivateFolder, InvalidRequestError, keepOwner } from '@writ/kernel';

/**
 * Rejected mode bits of a file with secrets: group write and any access by others. Group read is permitted, because
 * mounted secrets can require it.
 */
const LOOSE_MODE = 0o027;
const LOCK_ATTEMPTS = 200;
const LOCK_PAUSE_MS = 10;

/**
 * Reads a file with secrets; undefined when it does not exist.
 * @throws InvalidRequestError INVALID_FILE when it cannot be read or is accessible to other users
 */
export function readPrivate(file: string): string | undefined {
  let text: string;
  let mode: number;
  try {
    mode = statSync(file).mode;
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw badFile(file, `cannot be read (${codeOf(error)}); make it readable for this user`, error);
  }
  // On Windows the mode of every file includes these bits.
  if (process.platform !== 'win32' && (mode & LOOSE_MODE) !== 0)
    throw badFile(file, `is accessible to other users of this machine; run: chmod 600 ${file}`);
  return text;
}

/** Returns a string that changes with the file; undefined when it does not exist. */
export function fileStamp(file: string): string | undefined {
  const stat = statSync(file, { throwIfNoEntry: false, bigint: true });
  return stat && `${stat.mtimeNs}/${stat.ino}/${stat.size}`;
}

/** Replaces a file atomically and durably, mode 0600. The file keeps its owner if root replaces it. */
export function replacePrivate(file: string, text: string): void {
  const draft = writeDraft(file, text);
  try {
    renameSync(draft, file);
  } catch (error) {
    // For example, a mounted file cannot be replaced. The draft can contain a private key.
    rmSync(draft, { force: true });
    throw badFile(file, `cannot be replaced (${codeOf(error)})`, error);
  }
  syncFolder(file);
}

/**
 * Creates a file atomically and durably, mode 0600. Returns false when it already exists. A file that root creates
 * belongs to the owner of its folder.
 */
export function createPrivate(file: string, text: string): boolean {
  const draft = writeDraft(file, text);
  try {
    linkSync(draft, file);
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw badFile(file, `cannot be created (${codeOf(error)})`, error);
  } finally {
    rmSync(draft, { force: true });
  }
  syncFolder(file);
  return true;
}

/**
 * Runs `work` while holding the lock file.
 * @param maxAttempts maximum number of attempts to acquire the lock, 10 ms apart; default 200
 * @throws ConflictError FILE_LOCKED naming the lock file; InvalidRequestError INVALID_FILE when the lock file cannot be
 *   created
 */
export async function whileLocked<T>(
  file: string,
  work: () => T | Promise<T>,
  maxAttempts = LOCK_ATTEMPTS,
): Promise<T> {
  const lock = `${file}.lock`;
  createFolder(lock);
  for (let attempt = 1; !tryLock(lock); attempt += 1) {
    if (attempt >= maxAttempts)
      throw new ConflictError(
        'FILE_LOCKED',
        `${file} is being changed by another process; if none is running, remove ${lock}.`,
        { file },
      );
    await sleep(LOCK_PAUSE_MS);
  }
  try {
    return await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

/** Returns the error for a file that an operator must repair, with the message `<file> <what>.` */
export function badFile(file: string, what: string, cause?: unknown): InvalidRequestError {
  return new InvalidRequestError('INVALID_FILE', `${file} ${what}.`, { file }, { cause });
}

function writeDraft(file: string, text: string): string {
  createFolder(file);
  const draft = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  let handle: number;
  try {
    handle = openSync(draft, 'wx', 0o600);
  } catch (error) {
    throw badFile(file, `cannot be written (${codeOf(error)})`, error);
  }
  try {
    keepOwner(handle, file);
    fchmodSync(handle, 0o600);
    writeFileSync(handle, text);
    fsyncSync(handle);
  } catch (error) {
    rmSync(draft, { force: true });
    throw badFile(file, `cannot be written (${codeOf(error)})`, error);
  } finally {
    closeSync(handle);
  }
  return draft;
}

function createFolder(file: string): void {
  try {
    createPrivateFolder(dirname(file));
  } catch (error) {
    throw badFile(dirname(file), `cannot be created (${codeOf(error)})`, error);
  }
}

/** A rename or link is durable only after fsync of its folder. Windows cannot open folders. */
function syncFolder(file: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(dirname(file), 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function tryLock(lock: string): boolean {
  try {
    closeSync(openSync(lock, 'wx', 0o600));
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw badFile(lock, `cannot be created (${codeOf(error)})`, error);
  }
}

function hasCode(error: unknown, code: string): boolean {
  return codeOf(error) === code;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
