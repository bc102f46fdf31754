import { isDistributedPlatformAvailable } from '@writ/testing/distributed';
import { isFakeClockAvailable, isSmallDiskAvailable } from '@writ/testing/faults';
import { expect, it } from 'vitest';
import { runChaos } from './chaos.ts';

// A longer run: `npm run chaos -- --seed N --minutes M`.
it.skipIf(!isDistributedPlatformAvailable())(
  'keeps every invariant through each kind of fault of processes, links, clocks, disks and stores, attacks and overload (SB-6, EM-3, TG-1, TG-5, SV-5, SV-8, RT-2, RT-3, RT-4, HK-1, HK-2, SYS-4, SYS-5, BD-1, BD-3, BD-4, BD-5)',
  async () => {
    const { figures, violations, diagnostics } = await runChaos({
      seed: 1,
      // One round of all kinds.
      forMs: 0,
      // A long limit, for a busy machine.
      strandedWithinMs: 300_000,
      log: (line) => console.log(line),
    });
    expect(violations, diagnostics).toEqual([]);
    expect(figures.runs).toBeGreaterThan(0);
    expect(figures['kinds of faults never injected']).toEqual(expectedMissing());
  },
  900_000,
);

/** Returns the kinds of faults that cannot be injected on this machine. */
function expectedMissing(): string {
  return [
    ...(isFakeClockAvailable() ? [] : ['clock step', 'clock far from the others']),
    ...(isSmallDiskAvailable() ? [] : ['disk full']),
  ].join(', ');
}
