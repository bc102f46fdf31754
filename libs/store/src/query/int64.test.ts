import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { int64 } from './int64.ts';

describe('int64', () => {
  it('converts every form of a computed integer (EM-4)', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
        expect(int64(value)).toBe(value);
        expect(int64(value.toString())).toBe(value);
      }),
    );
    expect(int64(Number.MAX_SAFE_INTEGER)).toBe(9007199254740991n);
  });

  it('rejects values that are not integers or were already rounded (EM-4)', () => {
    for (const bad of [0.5, 2 ** 53, Number.NaN, '1.0', '', null, undefined, true]) {
      expect(() => int64(bad)).toThrow(expect.objectContaining({ reason: 'STORE_INVALID_INT64' }));
    }
  });
});
