import fc from 'fast-check';
import { expect, it } from 'vitest';
import { backoffMs } from './backoff.ts';

const OPTIONS = { baseMs: 50, maxMs: 2_000 };

it('doubles the upper bound with each attempt up to the maximum', () => {
  const almostOne = 1 - Number.EPSILON;
  const delays = [1, 2, 3, 6, 7, 1_000].map((attempt) => backoffMs(attempt, OPTIONS, almostOne));
  expect(delays).toEqual([50, 100, 200, 1_600, 2_000, 2_000]);
});

it('spreads delays over the whole range', () => {
  expect([0, 0.25, 0.5].map((random) => backoffMs(2, OPTIONS, random))).toEqual([0, 25, 50]);
});

it('returns the upper bound without jitter', () => {
  expect([1, 2, 3, 7].map((attempt) => backoffMs(attempt, OPTIONS, 1))).toEqual([
    50, 100, 200, 2_000,
  ]);
  expect(backoffMs(12, { baseMs: 3, maxMs: Number.POSITIVE_INFINITY }, 1)).toBe(3 * 2 ** 11);
});

it('stays within its limits for any attempt and random number', () => {
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(fc.nat(), random, (attempt, r) => {
      const delay = backoffMs(attempt, OPTIONS, r);
      expect(Number.isInteger(delay)).toBe(true);
      expect(delay).toBeGreaterThanOrEqual(0);
      expect(delay).toBeLessThanOrEqual(OPTIONS.maxMs);
    }),
  );
});
