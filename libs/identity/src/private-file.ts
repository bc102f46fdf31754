import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConflictError, InvalidRequestError } from '@writ/kernel';

/** Write by the group, anything by others. Reading by the group is how mounted secrets come. */
const LOOSE_MODE = 0o027;
const LOCK_TRIES = 200;
const LOCK_PAUSE_MS = 10;

/**
 * The text of a file that holds secrets; undefined when there is none.
 * @throws InvalidRequestError INVALID_FILE naming the file, when it cannot be read or others may
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
  // Windows has no such bits: every file shows as open to all.
  if (process.platform !== 'win32' && (mode & LOOSE_MODE) !== 0)
    throw badFile(file, `is open to other users of this machine; run: chmod 600 ${file}`);
  return text;
}

/** When the file last changed, in a form that only compares; undefined when there is none. */
export function fileStamp(file: string): string | undefined {
  const stat = statSync(file, { throwIfNoEntry: false, bigint: true });
  return stat && `${stat.mtimeNs}/${stat.ino}/${stat.size}`;
}

/** Replaces a file at once and durably; mode 0600. A crash leaves the old text or the new one. */
export function replacePrivate(file: string, text: string): void {
  const draft = writeDraft(file, text);
  renameSync(draft, file);
  syncFolder(file);
}

/** Creates a file durably, mode 0600; of several creators one wins. Returns whether it was this one. */
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
 * Runs `work` while no other process changes the file.
 * @throws ConflictError FILE_LOCKED after two seconds, naming the lock file
 */
export async function whileLocked<T>(
  file: string,
  work: () => T | Promise<T>,
  maxTries = LOCK_TRIES,
): Promise<T> {
  const lock = `${file}.lock`;
  makeFolder(lock);
  for (let tries = 1; !takeLock(lock); tries += 1) {
    if (tries >= maxTries)
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

/** The error for a file that a person has to mend: `<file> <what>.` */
export function badFile(file: string, what: string, cause?: unknown): InvalidRequestError {
  return new InvalidRequestError('INVALID_FILE', `${file} ${what}.`, { file }, { cause });
}

function writeDraft(file: string, text: string): string {
  makeFolder(file);
  const draft = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  let handle: number;
  try {
    handle = openSync(draft, 'wx', 0o600);
  } catch (error) {
    throw badFile(file, `cannot be written (${codeOf(error)})`, error);
  }
  try {
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

function makeFolder(file: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw badFile(dirname(file), `cannot be made (${codeOf(error)})`, error);
  }
}

/** A rename or link is durable only once its folder is. Windows cannot open folders. */
function syncFolder(file: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(dirname(file), 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function takeLock(lock: string): boolean {
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
