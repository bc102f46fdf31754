import { ManualClock } from '@writ/kernel';
import { expect, it } from 'vitest';
import { flatRate } from '../../domain/catalog/prices.ts';
import { PriceList } from './price-list.ts';
import { readCatalog } from './read-catalog.ts';

const entry = (settings: object) => {
  const { catalog } = readCatalog(
    {
      text: 'models: { a: { base_url: "http://127.0.0.1:9/v1", model: gpt-4.1-mini } }',
      file: 'm',
    },
    {},
    { a: settings },
  );
  return catalog.find('a', ['a']);
};
const prices = new PriceList(new ManualClock());

it('returns the exact prices of the maintained list (EM-4)', async () => {
  expect(await prices.pricesOf(entry({}))).toEqual({
    input: flatRate(400_000_000n),
    cachedInput: flatRate(100_000_000n),
    cacheWrite: flatRate(400_000_000n),
    longCacheWrite: flatRate(400_000_000n),
    output: flatRate(1_600_000_000n),
    reasoning: flatRate(1_600_000_000n),
  });
});

it('returns tiered prices of the maintained list (EM-4)', async () => {
  const known = await new PriceList(new ManualClock()).pricesOf(
    entry({ priced_as: 'gemini-2.5-pro' }),
  );
  expect(known?.input).toEqual({
    base: 1_250_000_000n,
    tiers: [{ above: 200_000n, price: 2_500_000_000n }],
  });
});

it('returns the prices of cache writes, preferring those of the catalog (EM-4, AP-2)', async () => {
  const claude = { priced_as: 'claude-opus-4-1' };
  expect(await new PriceList(new ManualClock()).pricesOf(entry(claude))).toMatchObject({
    cachedInput: flatRate(1_500_000_000n),
    cacheWrite: flatRate(18_750_000_000n),
    longCacheWrite: flatRate(30_000_000_000n),
  });
  const own = { ...claude, prices: { cache_write_1h_per_million_usd: '31' } };
  expect(await new PriceList(new ManualClock()).pricesOf(entry(own))).toMatchObject({
    cacheWrite: flatRate(18_750_000_000n),
    longCacheWrite: flatRate(31_000_000_000n),
  });
});

it('prefers catalog prices, and returns undefined for a model without prices (EM-4)', async () => {
  const own = { priced_as: 'gpt-4.1-mini', prices: { output_per_million_usd: '2' } };
  expect(await new PriceList(new ManualClock()).pricesOf(entry(own))).toMatchObject({
    input: flatRate(400_000_000n),
    output: flatRate(2_000_000_000n),
    reasoning: flatRate(2_000_000_000n),
  });
  const unpriced = entry({ priced_as: 'sim:anything' });
  expect(await new PriceList(new ManualClock()).pricesOf(unpriced)).toBeUndefined();
});
