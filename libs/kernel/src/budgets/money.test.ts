import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatUsd, fromCents, parseUsd, toCents } from './money.ts';

describe('money', () => {
  it('parses decimal USD exactly (EM-4)', () => {
    expect(parseUsd('0.10')).toBe(100_000_000n);
    expect(parseUsd('1200')).toBe(1_200_000_000_000n);
    expect(parseUsd('0.000000001')).toBe(1n);
    expect(parseUsd('-2.5')).toBe(-2_500_000_000n);
  });

  it('formats at least two decimals and no further trailing zeros (EM-4)', () => {
    expect(formatUsd(100_000_000n)).toBe('0.10');
    expect(formatUsd(125_000n)).toBe('0.000125');
    expect(formatUsd(-1n)).toBe('-0.000000001');
    expect(formatUsd(0n)).toBe('0.00');
  });

  it('rejects malformed, too precise and too large amounts, naming the field (EM-4)', () => {
    for (const bad of ['', '.5', '1.', '1e3', '0.0000000001', ' 1', '1,0', 'NaN', '1'.repeat(13)]) {
      expect(() => parseUsd(bad, 'max_cost_usd')).toThrow(
        expect.objectContaining({ reason: 'INVALID_AMOUNT', metadata: { field: 'max_cost_usd' } }),
      );
    }
  });

  it('round-trips through text (EM-4)', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), (nano) => {
        expect(parseUsd(formatUsd(nano))).toBe(nano);
      }),
    );
  });

  it('rounds cents in the given direction (SV-3)', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n }), (nano) => {
        const down = toCents(nano, 'down');
        const up = toCents(nano, 'up');
        expect(fromCents(down) <= nano && nano <= fromCents(up)).toBe(true);
        expect(up - down <= 1n).toBe(true);
      }),
    );
  });
});
