import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { changedPackages } from '../../scripts/lock-file.ts';

const REPOSITORY = resolve(import.meta.dirname, '../..');

/**
 * The commit whose replicas CI replaces by those of this tree (BD-6): the previous release, or a later commit when tables
 * or messages have changed since, so that both builds cannot run side by side. The changelog says when they have.
 */
export const PREVIOUS_COMMIT = '5d77fa605a113e7b772ccdab16558dd2fd255e22';

/** A source tree of another commit that can run. */
export interface PreviousBuild {
  readonly folder: string;
  /** The commit. */
  readonly commit: string;
  remove(): void;
}

/**
 * Checks a commit out beside this repository, with the installed packages of this one.
 * @throws Error when the commit does not exist here, or needs other packages
 */
export function previousBuild(reference: string): PreviousBuild {
  const commit = git('rev-parse', '--verify', `${reference}^{commit}`);
  const changed = changedPackages(
    git('show', `${commit}:package-lock.json`),
    git('show', ':package-lock.json'),
  );
  if (changed.length > 0) {
    const names = changed.map((name) => name || 'the root package').join(', ');
    throw new Error(`${reference} needs other packages: package-lock.json differs in ${names}.`);
  }
  return checkOut(commit);
}

/** Whether this clone lacks older commits. */
export function isShallowClone(): boolean {
  return git('rev-parse', '--is-shallow-repository') === 'true';
}

/** Whether the history of this clone has a commit; a shallow clone lacks the older ones. */
export function hasCommit(reference: string): boolean {
  try {
    git('cat-file', '-e', `${reference}^{commit}`);
    return true;
  } catch {
    return false;
  }
}

/** Checks a commit out as {@link previousBuild} does, whichever packages it was written for. */
export function checkOut(commit: string): PreviousBuild {
  const folder = mkdtempSync(join(tmpdir(), 'writ-previous-'));
  git('worktree', 'add', '--force', '--detach', folder, commit);
  linkPackages(folder);
  return {
    folder,
    commit,
    remove() {
      git('worktree', 'remove', '--force', folder);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Installed packages are shared; the packages of the repository are those of the other tree. */
function linkPackages(folder: string): void {
  const installed = join(REPOSITORY, 'node_modules');
  const packages = join(folder, 'node_modules');
  mkdirSync(join(packages, '@writ'), { recursive: true });
  for (const name of readdirSync(installed)) {
    if (name !== '@writ') symlinkSync(join(installed, name), join(packages, name));
  }
  for (const name of readdirSync(join(installed, '@writ'))) {
    symlinkSync(readlinkSync(join(installed, '@writ', name)), join(packages, '@writ', name));
  }
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, {
    cwd: REPOSITORY,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}
