import { resolve } from 'node:path';
import { isDistributedPlatformAvailable } from '@writ/testing/distributed';
import { expect, it } from 'vitest';
import { rollingUpgrade } from '../upgrade/rolling-upgrade.ts';

// Before 1.0 tables may change without a migration, so that CI replaces replicas by the same build, and
// `npm run upgrade` by those of another commit.
it.skipIf(!isDistributedPlatformAvailable())(
  'loses no run while each replica of each service is replaced (BD-6, RT-2, SYS-4, SYS-5)',
  async () => {
    const build = resolve(import.meta.dirname, '../..');
    const { runs, problems } = await rollingUpgrade({
      from: build,
      to: build,
      waiting: 2,
      during: 1,
    });
    expect(problems).toEqual([]);
    expect(runs).toBe(12);
  },
  600_000,
);
