import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { centsDown, centsUp, MAX_CENTS, usdFromCents } from './cents.ts';

describe('cents', () => {
  it.each([
    [1.1, 110n, 110n],
    [19.99, 1999n, 1999n],
    [0.001, 1n, 0n],
    [999.991, 99_999n + 1n, 99_999n],
    [1000.001, 100_001n, 100_000n],
    [-0.001, 0n, -1n],
    [-5, -500n, -500n],
    [0, 0n, 0n],
    [-0, 0n, 0n],
    [0.1 + 0.2, 31n, 30n],
    [5e-324, 1n, 0n],
    [1e300, MAX_CENTS, MAX_CENTS],
    [-1e300, -MAX_CENTS, -MAX_CENTS],
  ])('rounds %d USD up to %d cents and down to %d (SV-3)', (usd, up, down) => {
    expect([centsUp(usd), centsDown(usd)]).toEqual([up, down]);
  });

  it('converts every amount of whole cents exactly in both directions (SV-3)', () => {
    const whole = fc.integer({ min: -1_000_000_000, max: 1_000_000_000 });
    const property = fc.property(whole, (cents) => {
      const usd = usdFromCents(BigInt(cents));
      expect([centsUp(usd), centsDown(usd)]).toEqual([BigInt(cents), BigInt(cents)]);
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it('rounds up and down at most one cent apart (SV-3)', () => {
    const property = fc.property(fc.double({ noNaN: true, min: -1e15, max: 1e15 }), (usd) => {
      const gap = centsUp(usd) - centsDown(usd);
      expect(gap === 0n || gap === 1n).toBe(true);
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it('throws for NaN and infinities', () => {
    expect(() => centsUp(Number.NaN)).toThrow(RangeError);
    expect(() => centsDown(Number.POSITIVE_INFINITY)).toThrow(RangeError);
  });
});
