import fc from 'fast-check';
import { expect, it } from 'vitest';
import { NO_USAGE } from '../ledger/spending.ts';
import { affordableOutput, costOf, flatRate, type TokenPrices, worstCost } from './prices.ts';

/** 0.40, 0.10, 0.50, 0.80, 1.60 and 3.20 USD per million tokens. */
const PRICES: TokenPrices = {
  input: flatRate(400_000_000n),
  cachedInput: flatRate(100_000_000n),
  cacheWrite: flatRate(500_000_000n),
  longCacheWrite: flatRate(800_000_000n),
  output: flatRate(1_600_000_000n),
  reasoning: flatRate(3_200_000_000n),
};

it('prices input, cached input, output and reasoning separately (EM-4)', () => {
  const usage = { ...NO_USAGE, input: 1000n, cachedInput: 400n, output: 100n, reasoning: 30n };
  expect(costOf(PRICES, usage)).toBe(600n * 400n + 400n * 100n + 70n * 1600n + 30n * 3200n);
});

it('prices cache writes by how long they are kept (EM-4, AP-2)', () => {
  const usage = { ...NO_USAGE, input: 1000n, cachedInput: 400n, cacheWrite: 500n };
  const read = 100n * 400n + 400n * 100n;
  expect(costOf(PRICES, usage)).toBe(read + 500n * 500n);
  expect(costOf(PRICES, { ...usage, longCacheWrite: 200n })).toBe(read + 300n * 500n + 200n * 800n);
  // The worst cost covers any split of the tokens.
  expect(worstCost(PRICES, 1000n, 0n)).toBe(1000n * 800n);
});

it('rounds up to whole nano-USD once per call, not per token (EM-4)', () => {
  const tiny = { ...PRICES, input: flatRate(1n) };
  const usage = { ...NO_USAGE, input: 3n };
  expect(costOf(tiny, usage)).toBe(1n);
  expect(costOf(tiny, { ...usage, input: 1_000_000n })).toBe(1n);
  expect(costOf(tiny, { ...usage, input: 1_000_001n })).toBe(2n);
});

it('applies the price of a tier to the whole call when the prompt exceeds it (EM-4)', () => {
  const tiered = {
    ...PRICES,
    input: { base: 1_000_000n, tiers: [{ above: 10n, price: 5_000_000n }] },
  };
  const usage = { ...NO_USAGE, input: 10n };
  expect(costOf(tiered, usage)).toBe(10n);
  expect(costOf(tiered, { ...usage, input: 11n })).toBe(55n);
});

const count = fc.bigInt({ min: 0n, max: 1_000_000n });
const rate = fc.record({
  base: fc.bigInt({ min: 0n, max: 10_000_000_000n }),
  tiers: fc.array(
    fc.record({ above: count, price: fc.bigInt({ min: 0n, max: 10_000_000_000n }) }),
    {
      maxLength: 2,
    },
  ),
});
const prices = fc.record({
  input: rate,
  cachedInput: rate,
  cacheWrite: rate,
  longCacheWrite: rate,
  output: rate,
  reasoning: rate,
});

it('never estimates less than the cost of a call (EM-3)', () => {
  fc.assert(
    fc.property(prices, count, count, fc.nat(100), fc.nat(100), (given, input, output, c, r) => {
      const cachedInput = (input * BigInt(c)) / 100n;
      const cacheWrite = input - cachedInput;
      const longCacheWrite = (cacheWrite * BigInt(r)) / 100n;
      const reasoning = (output * BigInt(r)) / 100n;
      const usage = { input, cachedInput, cacheWrite, longCacheWrite, output, reasoning };
      const actual = costOf(given, usage);
      expect(worstCost(given, input, output) >= actual).toBe(true);
    }),
  );
});

it('returns the largest output that the remaining budget pays for (EM-3)', () => {
  fc.assert(
    fc.property(prices, count, fc.bigInt({ min: 0n, max: 10n ** 13n }), (given, input, money) => {
      const output = affordableOutput(given, input, money);
      if (output === undefined) return;
      if (output > 0n) expect(worstCost(given, input, output) <= money).toBe(true);
      expect(worstCost(given, input, output + 1n) > money).toBe(true);
    }),
  );
});
