import { isDistributedPlatformAvailable } from '@writ/testing/distributed';
import { expect, it } from 'vitest';
import { runChaos } from './chaos.ts';

// A longer run: `npm run chaos -- --seed N --minutes M`.
it.skipIf(!isDistributedPlatformAvailable())(
  'keeps every invariant while two replicas of each service, PostgreSQL and NATS are killed, paused and partitioned (SB-6, EM-3, TG-1, TG-5, SV-5, SV-8, RT-2, RT-3, RT-4, HK-1, HK-2, SYS-4, SYS-5)',
  async () => {
    const { figures, violations, diagnostics } = await runChaos({
      seed: 1,
      forMs: 60_000,
      log: (line) => console.log(line),
    });
    expect(violations, diagnostics).toEqual([]);
    expect(figures.runs).toBeGreaterThan(0);
    expect(figures.disturbances).toBeGreaterThan(0);
  },
  600_000,
);
