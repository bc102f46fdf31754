import {
  accessSync,
  constants,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
const PREFIX = 'writ-test-run-';
/** Minimum free space in bytes, more than the tests use at a time; /dev/shm of a container may have less. */
const ENOUGH = 512 * 1024 * 1024;
/** Age after which a folder is treated as abandoned, ms; longer than any test run. */
const ABANDONED_MS = 6 * 3_600_000;

/**
 * Keeps the temporary folders of a test run in memory if possible, because otherwise every commit waits for the disk,
 * and tests commit tens of thousands of times. If TMPDIR is set, it is used instead.
 * @returns a function that removes the files of the tests; undefined when they stay on disk
 */
export function setup(): (() => void) | undefined {
  if (process.env.TMPDIR !== undefined || !hasEnoughMemory()) return undefined;
  removeAbandoned();
  const folder = mkdtempSync(join(MEMORY, PREFIX));
  process.env.TMPDIR = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}

function hasEnoughMemory(): boolean {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ENOUGH;
  } catch {
    // This system has no such folder.
    return false;
  }
}

/** Removes the folders that killed test runs left behind. */
function removeAbandoned(): void {
  for (const name of readdirSync(MEMORY).filter((each) => each.startsWith(PREFIX))) {
    const { mtimeMs } = statSync(join(MEMORY, name), { throwIfNoEntry: false }) ?? {};
    if (mtimeMs === undefined || Date.now() - mtimeMs < ABANDONED_MS) continue;
    rmSync(join(MEMORY, name), { recursive: true, force: true });
  }
}
