import type { ModelPrice } from '@pydantic/genai-prices';
import { type Clock, parseUsd } from '@writ/kernel';
import type { ModelEntry } from '../../domain/catalog/model.ts';
import type { Rate, TokenPrices } from '../../domain/catalog/prices.ts';
import { dayOf } from '../../domain/ledger/calendar.ts';

type Listed = ModelPrice[string];

/** What models cost: the maintained list of a package, under what the catalog sets itself (EM-4). */
export class PriceList {
  readonly #clock: Clock;
  readonly #known = new Map<string, Promise<TokenPrices | undefined>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The prices of a model today; undefined when input or output has no price. */
  pricesOf(model: ModelEntry): Promise<TokenPrices | undefined> {
    const { input, output, cachedInput = input, reasoning = output } = model.prices;
    if (input !== undefined && output !== undefined) {
      return Promise.resolve({
        input,
        output,
        cachedInput: cachedInput ?? input,
        reasoning: reasoning ?? output,
      });
    }
    // Listed prices change on known days.
    const now = this.#clock.now();
    const key = `${dayOf(now)} ${model.alias}`;
    const prices = this.#known.get(key) ?? look(model, now);
    if (!this.#known.has(key) && this.#known.size > MAX_KNOWN) this.#known.clear();
    this.#known.set(key, prices);
    return prices;
  }
}

const MAX_KNOWN = 1_000;

async function look(model: ModelEntry, timestamp: Date): Promise<TokenPrices | undefined> {
  // The list takes a moment to load, which a start need not wait for.
  const { calcPrice } = await import('@pydantic/genai-prices');
  const usage = { input_tokens: 1, output_tokens: 1 };
  const ask = (options: { providerApiUrl?: string }): ModelPrice | undefined =>
    calcPrice(usage, model.pricedAs, { timestamp, ...options })?.model_price;
  const listed = ask({ providerApiUrl: model.baseUrl }) ?? ask({});
  const input = model.prices.input ?? toRate(listed?.input_mtok);
  const output = model.prices.output ?? toRate(listed?.output_mtok);
  if (input === undefined || output === undefined) return undefined;
  return {
    input,
    output,
    cachedInput: model.prices.cachedInput ?? toRate(listed?.cache_read_mtok) ?? input,
    reasoning: model.prices.reasoning ?? output,
  };
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

/** Nano-USD of a listed price in USD: lists write decimals, which floats only imitate. */
function exact(usd: number): bigint {
  return parseUsd(usd.toFixed(9), 'price');
}
