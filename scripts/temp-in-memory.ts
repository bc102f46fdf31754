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
/** More than the tests use at a time, in bytes; containers may have less. */
const ENOUGH = 512 * 1024 * 1024;
/** Longer than any run. */
const ABANDONED_MS = 6 * 3_600_000;

/**
 * Puts the temporary folders of a test run into memory if possible: every commit waits for the disk,
 * and tests commit tens of thousands of times. TMPDIR takes precedence.
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

/** Leftovers of killed runs. */
function removeAbandoned(): void {
  for (const name of readdirSync(MEMORY).filter((each) => each.startsWith(PREFIX))) {
    const { mtimeMs } = statSync(join(MEMORY, name), { throwIfNoEntry: false }) ?? {};
    if (mtimeMs === undefined || Date.now() - mtimeMs < ABANDONED_MS) continue;
    rmSync(join(MEMORY, name), { recursive: true, force: true });
  }
}
