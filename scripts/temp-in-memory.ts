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
/** More than the tests ever have at a time, bytes; containers may have less. */
const ENOUGH = 512 * 1024 * 1024;
/** No run takes this long. */
const ABANDONED_MS = 6 * 3_600_000;

/**
 * Puts the temporary folders of a test run into memory where there is some: every commit waits for the disk,
 * and tests commit tens of thousands of times. Whoever sets TMPDIR decides.
 * @returns removes what the tests left
 */
export function setup(): (() => void) | undefined {
  if (process.env.TMPDIR !== undefined || !hasRoom()) return undefined;
  removeAbandoned();
  const folder = mkdtempSync(join(MEMORY, PREFIX));
  process.env.TMPDIR = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}

function hasRoom(): boolean {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ENOUGH;
  } catch {
    // No such folder on this system.
    return false;
  }
}

/** What runs left behind that were killed. */
function removeAbandoned(): void {
  for (const name of readdirSync(MEMORY).filter((each) => each.startsWith(PREFIX))) {
    const { mtimeMs } = statSync(join(MEMORY, name), { throwIfNoEntry: false }) ?? {};
    if (mtimeMs === undefined || Date.now() - mtimeMs < ABANDONED_MS) continue;
    rmSync(join(MEMORY, name), { recursive: true, force: true });
  }
}
