import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitsDecimals } from './decimals.ts';

describe('fitsDecimals', () => {
  it.each([
    [700.55, 2, true],
    [700.555, 2, false],
    [0.1 + 0.2, 2, false],
    [1e-7, 6, false],
    [1e-7, 7, true],
    [1e21, 0, true],
    [12.5, 0, false],
    [-0.01, 2, true],
    [0, 0, true],
    [Number.NaN, 2, false],
    [Number.POSITIVE_INFINITY, 2, false],
  ])(
    'returns whether %d in JSON has at most %d decimal places: %s (TG-3)',
    (value, places, fits) => {
      expect(fitsDecimals(value, places)).toBe(fits);
    },
  );

  it('accepts exactly the numbers that toFixed does not change (SV-5)', () => {
    const amount = fc.oneof(
      fc.double({ noNaN: true, min: -1e9, max: 1e9 }),
      fc.integer({ min: -1_000_000_000, max: 1_000_000_000 }).map((cents) => cents / 100),
      fc.integer({ min: -1_000_000_000, max: 1_000_000_000 }).map((mills) => mills / 1000),
    );
    fc.assert(
      fc.property(amount, fc.integer({ min: 0, max: 6 }), (value, places) => {
        expect(fitsDecimals(value, places)).toBe(Number(value.toFixed(places)) === value);
      }),
    );
  });
});
