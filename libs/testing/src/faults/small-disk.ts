import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const CHUNK = 1 << 20;

/** A file system of limited size. */
export interface SmallDisk {
  /** Its root folder, which every user may write. */
  readonly folder: string;
  /** Uses all free space. */
  fill(): void;
  /** Frees the space that {@link SmallDisk.fill} used. */
  free(): void;
  /** Unmounts and removes it. */
  close(): void;
}

let isPermitted: boolean | undefined;

/** Whether this process may mount file systems; reports once on standard error when it may not. */
export function isSmallDiskAvailable(): boolean {
  if (isPermitted !== undefined) return isPermitted;
  try {
    openSmallDisk('/tmp', 1).close();
    isPermitted = true;
  } catch (error) {
    process.stderr.write(`skipped: tests with a full disk, because ${String(error)}\n`);
    isPermitted = false;
  }
  return isPermitted;
}

/**
 * Mounts a file system in memory in a new folder below `base`.
 * @throws Error when this process may not mount file systems
 */
export function openSmallDisk(base: string, sizeMb: number): SmallDisk {
  const folder = mkdtempSync(join(base, 'writ-small-disk-'));
  const options = ['-t', 'tmpfs', '-o', `size=${sizeMb}m,mode=1777`, 'writ-small-disk', folder];
  const { status, stderr, error } = spawnSync('mount', options, { encoding: 'utf8' });
  if (status !== 0) {
    rmSync(folder, { recursive: true });
    throw new Error(`file systems cannot be mounted: ${String(error ?? stderr).trim()}`);
  }
  const ballast = join(folder, 'ballast');
  mkdirSync(ballast);
  const unmount = (): void => void spawnSync('umount', ['--lazy', folder]);
  // An interrupted test run leaves no mount behind.
  process.once('exit', unmount);
  return {
    folder,
    fill: () => fill(join(ballast, 'file')),
    free: () => rmSync(join(ballast, 'file'), { force: true }),
    close() {
      process.off('exit', unmount);
      unmount();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function fill(file: string): void {
  const out = openSync(file, 'a');
  try {
    for (let size = CHUNK; size >= 1; size = Math.floor(size / 16)) {
      while (writesAll(out, Buffer.alloc(size)));
    }
  } finally {
    closeSync(out);
  }
}

/** Writes bytes; returns false when there was no space for all of them. */
function writesAll(out: number, bytes: Buffer): boolean {
  try {
    return writeSync(out, bytes) === bytes.length;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    return false;
  }
}
