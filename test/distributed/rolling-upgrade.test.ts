import { resolve } from 'node:path';
import { isDistributedPlatformAvailable } from '@writ/testing/distributed';
import { expect, it, onTestFinished } from 'vitest';
import {
  hasCommit,
  isShallowClone,
  PREVIOUS_COMMIT,
  previousBuild,
} from '../upgrade/previous-build.ts';
import { rollingUpgrade } from '../upgrade/rolling-upgrade.ts';

const CURRENT = resolve(import.meta.dirname, '../..');

/**
 * Returns the source tree of the previous build. In a shallow clone that lacks the previous commit, returns the current
 * tree, so that the test replaces replicas with the same build.
 */
function previousTree(): string {
  if (!hasCommit(PREVIOUS_COMMIT) && isShallowClone()) {
    console.warn(
      `This clone is shallow and lacks ${PREVIOUS_COMMIT}: one build is tested, not two.`,
    );
    return CURRENT;
  }
  const build = previousBuild(PREVIOUS_COMMIT);
  onTestFinished(() => build.remove());
  return build.folder;
}

it.skipIf(!isDistributedPlatformAvailable())(
  'loses no run while each replica of the previous build is replaced by the current build (BD-6, RT-2, SYS-4, SYS-5)',
  async () => {
    const { runs, problems } = await rollingUpgrade({
      from: previousTree(),
      to: CURRENT,
      waiting: 2,
      during: 1,
    });
    expect(problems).toEqual([]);
    expect(runs).toBe(12);
  },
  600_000,
);
