import { isDistributedPlatformAvailable } from '@writ/testing/distributed';
import { expect, it } from 'vitest';
import { chaos } from './chaos.ts';

// The suite checks itself; `npm run chaos -- --seed N --minutes M` goes on for longer.
it.skipIf(!isDistributedPlatformAvailable())(
  'keeps every invariant while two replicas of everything, PostgreSQL and NATS are killed, paused and cut off (SB-6, EM-3, TG-1, TG-5, SV-5, SV-8, RT-2, RT-3, RT-4, HK-1, HK-2, SYS-4, SYS-5)',
  async () => {
    const { runs } = await chaos({ seed: 1, forMs: 60_000, say: (line) => console.log(line) });
    expect(runs).toBeGreaterThan(0);
  },
  600_000,
);
