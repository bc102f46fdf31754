import { ManualClock } from '@writ/kernel';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tenantRateLimit } from './tenant-rate.ts';

describe('the rate limit of a tenant', () => {
  it('allows a burst, then a constant rate, and returns the retry delay (SYS-3)', () => {
    const clock = new ManualClock();
    const admit = tenantRateLimit({ perSecond: 10, burst: 3 }, clock);
    for (let call = 0; call < 3; call += 1) admit('acme');
    expect(() => admit('acme')).toThrow(
      expect.objectContaining({
        kind: 'resource_exhausted',
        reason: 'RATE_LIMITED',
        metadata: { setting: 'WRIT_TENANT_RATE', limit: '10', retry_after_ms: '100' },
      }),
    );
    admit('rivals');
    clock.advance(100);
    admit('acme');
    expect(() => admit('acme')).toThrow('retry in 100 ms');
  });

  it('is measured with the monotonic clock, regardless of steps of the wall clock (SYS-6, BD-3)', () => {
    const clock = new ManualClock();
    const admit = tenantRateLimit({ perSecond: 10, burst: 1 }, clock);
    admit('acme');
    clock.step(3_600_000);
    expect(() => admit('acme')).toThrow('retry in 100 ms');
    clock.step(-7_200_000);
    clock.advance(100);
    admit('acme');
  });

  it('never admits more than burst and rate allow, for any arrival times of calls (SYS-6)', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -5, max: 400 }), { maxLength: 60 }),
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 10 }),
        (pauses, perSecond, burst) => {
          const clock = new ManualClock();
          const admit = tenantRateLimit({ perSecond, burst }, clock);
          let elapsed = 0;
          let admitted = 0;
          for (const pause of pauses) {
            clock.advance(pause);
            elapsed += Math.max(0, pause);
            try {
              admit('acme');
              admitted += 1;
            } catch {
              // A rejected call is not counted.
            }
          }
          expect(admitted).toBeLessThanOrEqual(burst + (elapsed * perSecond) / 1_000 + 1e-6);
        },
      ),
    );
  });
});
