import type { ModelPrice } from '@pydantic/genai-prices';
import { type Clock, parseUsd } from '@writ/kernel';
import type { ModelEntry } from '../../domain/catalog/catalog.ts';
import type { Rate, TokenPrices } from '../../domain/catalog/prices.ts';
import { dayOf } from '../../domain/ledger/balance.ts';

type Listed = ModelPrice[string];

/**
 * Model prices (EM-4). If the catalog sets both the input and the output price of a model, only the catalog is used;
 * otherwise missing prices come from the price list that a package maintains.
 */
export class PriceList {
  readonly #clock: Clock;
  /** Prices by catalog entry; a reloaded catalog has new entries. */
  #known = new WeakMap<ModelEntry, Promise<TokenPrices | undefined>>();
  #day = '';

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the current prices of a model; undefined when input or output has no price. */
  pricesOf(model: ModelEntry): Promise<TokenPrices | undefined> {
    const { input, output } = model.prices;
    if (input !== undefined && output !== undefined) {
      return Promise.resolve(completed(input, output, model.prices));
    }
    // The price list contains prices that take effect on later dates, so prices are looked up again every day.
    const now = this.#clock.now();
    if (this.#day !== dayOf(now)) {
      this.#day = dayOf(now);
      this.#known = new WeakMap();
    }
    const prices = this.#known.get(model) ?? loadPrices(model, now);
    this.#known.set(model, prices);
    return prices;
  }
}

async function loadPrices(model: ModelEntry, timestamp: Date): Promise<TokenPrices | undefined> {
  // Loaded on first use, to keep startup fast.
  const { calcPrice } = await import('@pydantic/genai-prices');
  const usage = { input_tokens: 1, output_tokens: 1 };
  const find = (options: { providerApiUrl?: string }): ModelPrice | undefined =>
    calcPrice(usage, model.pricedAs, { timestamp, ...options })?.model_price;
  const listed = find({ providerApiUrl: model.baseUrl }) ?? find({});
  const input = model.prices.input ?? toRate(listed?.input_mtok);
  const output = model.prices.output ?? toRate(listed?.output_mtok);
  if (input === undefined || output === undefined) return undefined;
  const { cache_read_mtok, cache_write_mtok, cache_write_5m_mtok, cache_write_1h_mtok } =
    listed ?? {};
  const known = {
    cachedInput: toRate(cache_read_mtok),
    cacheWrite: toRate(cache_write_5m_mtok ?? cache_write_mtok),
    longCacheWrite: toRate(cache_write_1h_mtok),
  };
  return completed(input, output, { ...defined(known), ...model.prices });
}

function completed(input: Rate, output: Rate, known: Partial<TokenPrices>): TokenPrices {
  const { cachedInput = input, cacheWrite = input, reasoning = output } = known;
  const { longCacheWrite = cacheWrite } = known;
  return { input, cachedInput, cacheWrite, longCacheWrite, output, reasoning };
}

/** Returns the rates that are defined. */
function defined(rates: { readonly [K in keyof TokenPrices]?: Rate | undefined }) {
  return Object.fromEntries(Object.entries(rates).filter(([, rate]) => rate !== undefined));
}

function toRate(listed: Listed): Rate | undefined {
  if (listed === undefined) return undefined;
  if (typeof listed === 'number') return { base: exact(listed), tiers: [] };
  return {
    base: exact(listed.base),
    tiers: listed.tiers
      .map(({ start, price }) => ({ above: BigInt(start), price: exact(price) }))
      .toSorted((a, b) => (a.above < b.above ? -1 : 1)),
  };
}

/** Converts a listed price in USD to nano-USD, exact to nine decimals. */
function exact(usd: number): bigint {
  return parseUsd(usd.toFixed(9), 'price');
}
