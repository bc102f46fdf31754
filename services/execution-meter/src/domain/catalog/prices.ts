import type { CacheWrites } from '../chat/chat.ts';
import type { TokenUsage } from '../ledger/spending.ts';

/** Price of a million tokens in nano-USD, exact to nine decimals of a USD (EM-4). */
export interface Rate {
  readonly base: bigint;
  /**
   * Prices that replace `base` for all tokens of a call whose prompt has more than `above` tokens; in ascending order
   * of `above`.
   */
  readonly tiers: readonly { readonly above: bigint; readonly price: bigint }[];
}

/** The prices of a model. */
export interface TokenPrices {
  readonly input: Rate;
  readonly cachedInput: Rate;
  readonly cacheWrite: Rate;
  /** Price of tokens that the provider keeps in its cache for an hour. */
  readonly longCacheWrite: Rate;
  readonly output: Rate;
  readonly reasoning: Rate;
}

const MILLION = 1_000_000n;

/** Returns a rate without tiers. */
export function flatRate(nanoUsdPerMillion: bigint): Rate {
  return { base: nanoUsdPerMillion, tiers: [] };
}

/**
 * Returns the prices that can apply to a request with these cache writes, so that a hold does not include the price of
 * cache writes that cannot occur.
 */
export function pricesWith(prices: TokenPrices, writes: CacheWrites): TokenPrices {
  const { input, cacheWrite } = prices;
  if (writes === 'long') return prices;
  const short = writes === 'short' ? cacheWrite : input;
  return { ...prices, cacheWrite: short, longCacheWrite: short };
}

/** Returns the cost of a call in nano-USD, rounded up once (EM-4). */
export function costOf(prices: TokenPrices, usage: TokenUsage): bigint {
  const { input, output } = usage;
  const cached = least(usage.cachedInput, input);
  const written = least(usage.cacheWrite, input - cached);
  const long = least(usage.longCacheWrite ?? 0n, written);
  const reasoning = least(usage.reasoning, output);
  const price = (rate: Rate): bigint => priceAt(rate, input);
  const nanoUsdTimesMillion =
    (input - cached - written) * price(prices.input) +
    cached * price(prices.cachedInput) +
    (written - long) * price(prices.cacheWrite) +
    long * price(prices.longCacheWrite) +
    (output - reasoning) * price(prices.output) +
    reasoning * price(prices.reasoning);
  return divideUp(nanoUsdTimesMillion, MILLION);
}

/**
 * Returns the maximum cost of a call with these tokens, for any split into cached, written and
 * reasoning tokens.
 */
export function worstCost(prices: TokenPrices, input: bigint, output: bigint): bigint {
  const [inputPrice, outputPrice] = worstPrices(prices, input);
  return divideUp(input * inputPrice + output * outputPrice, MILLION);
}

/**
 * Returns how many output tokens `nanoUsd` pays for after the cost of the prompt, in the worst case; undefined when
 * output tokens are free.
 */
export function affordableOutput(
  prices: TokenPrices,
  input: bigint,
  nanoUsd: bigint,
): bigint | undefined {
  const [inputPrice, outputPrice] = worstPrices(prices, input);
  const rest = nanoUsd * MILLION - input * inputPrice;
  if (rest < 0n) return 0n;
  return outputPrice === 0n ? undefined : rest / outputPrice;
}

/** Returns the highest input and output prices that apply to a prompt of at most `input` tokens. */
function worstPrices(prices: TokenPrices, input: bigint): [bigint, bigint] {
  const worst = (...rates: Rate[]): bigint =>
    rates
      .flatMap(({ base, tiers }) => [
        base,
        ...tiers.filter(({ above }) => input > above).map(({ price }) => price),
      ])
      .reduce(larger, 0n);
  const { cachedInput, cacheWrite, longCacheWrite, output, reasoning } = prices;
  return [worst(prices.input, cachedInput, cacheWrite, longCacheWrite), worst(output, reasoning)];
}

function priceAt({ base, tiers }: Rate, input: bigint): bigint {
  return tiers.findLast(({ above }) => input > above)?.price ?? base;
}

function divideUp(amount: bigint, by: bigint): bigint {
  return (amount + by - 1n) / by;
}

function larger(a: bigint, b: bigint): bigint {
  if (a > b) return a;
  return b;
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
