import { ManualClock } from '@writ/kernel';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tenantRateLimit } from './tenant-rate.ts';

describe('the rate of a tenant', () => {
  it('is a burst, then so many a second, and a refusal says when to call again (SYS-3)', () => {
    const clock = new ManualClock();
    const take = tenantRateLimit({ perSecond: 10, burst: 3 }, clock);
    for (let call = 0; call < 3; call += 1) take('acme');
    expect(() => take('acme')).toThrow(
      expect.objectContaining({
        kind: 'resource_exhausted',
        reason: 'RATE_LIMITED',
        metadata: { setting: 'WRIT_TENANT_RATE', limit: '10', retry_after_ms: '100' },
      }),
    );
    take('rivals');
    clock.advance(100);
    take('acme');
    expect(() => take('acme')).toThrow('call again in 100 ms');
  });

  it('never lets more through than burst and rate allow, however calls fall (SYS-6)', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -5, max: 400 }), { maxLength: 60 }),
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 10 }),
        (pauses, perSecond, burst) => {
          const clock = new ManualClock();
          const take = tenantRateLimit({ perSecond, burst }, clock);
          let elapsed = 0;
          let taken = 0;
          for (const pause of pauses) {
            clock.advance(pause);
            elapsed += Math.max(0, pause);
            try {
              take('acme');
              taken += 1;
            } catch {
              // Refused: it counts nothing.
            }
          }
          expect(taken).toBeLessThanOrEqual(burst + (elapsed * perSecond) / 1_000 + 1e-6);
        },
      ),
    );
  });
});
