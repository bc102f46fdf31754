import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { changedPackages } from '../../scripts/lock-file.ts';

const REPOSITORY = resolve(import.meta.dirname, '../..');

/**
 * The commit from which CI upgrades to this tree, replica by replica (BD-6): the previous release, or a later commit if
 * tables or messages have changed since that release in a way that prevents it from running side by side with this
 * tree. The changelog lists such changes.
 */
export const PREVIOUS_COMMIT = '02535d61c93d843dbe2d8a20074a467b80f829f0';

/** A runnable source tree of another commit. */
export interface PreviousBuild {
  readonly folder: string;
  /** The commit. */
  readonly commit: string;
  remove(): void;
}

/**
 * Checks out a commit in a temporary folder, with the installed packages of this repository.
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

/** Returns whether the history of this clone has a commit; a shallow clone lacks older commits. */
export function hasCommit(reference: string): boolean {
  try {
    git('cat-file', '-e', `${reference}^{commit}`);
    return true;
  } catch {
    return false;
  }
}

/** Checks out a commit as {@link previousBuild} does, regardless of the packages that it needs. */
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

/**
 * Links the third-party packages to those installed in this repository. The links of the `@writ` packages are relative,
 * so they lead to the packages of the checked-out tree.
 */
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
