import type { TokenUsage } from '../ledger/spending.ts';

/** Price of a million tokens in nano-USD, exact to nine decimals of a USD (EM-4). */
export interface Rate {
  readonly base: bigint;
  /** Prices of the whole call when its prompt has more tokens than `above`, in ascending order. */
  readonly tiers: readonly { readonly above: bigint; readonly price: bigint }[];
}

/** The four prices of a model. */
export interface TokenPrices {
  readonly input: Rate;
  readonly cachedInput: Rate;
  readonly output: Rate;
  readonly reasoning: Rate;
}

const MILLION = 1_000_000n;

/** A price without tiers. */
export function flatRate(nanoUsdPerMillion: bigint): Rate {
  return { base: nanoUsdPerMillion, tiers: [] };
}

/** Returns the cost of a call in nano-USD, rounded up once (EM-4). */
export function costOf(prices: TokenPrices, usage: TokenUsage): bigint {
  const { input, output } = usage;
  const cached = least(usage.cachedInput, input);
  const reasoning = least(usage.reasoning, output);
  const price = (rate: Rate): bigint => priceAt(rate, input);
  const nanoUsdTimesMillion =
    (input - cached) * price(prices.input) +
    cached * price(prices.cachedInput) +
    (output - reasoning) * price(prices.output) +
    reasoning * price(prices.reasoning);
  return divideUp(nanoUsdTimesMillion, MILLION);
}

/**
 * Returns the maximum cost of a call with these tokens, for any split into cached and reasoning
 * tokens.
 */
export function worstCost(prices: TokenPrices, input: bigint, output: bigint): bigint {
  const [inputPrice, outputPrice] = worstPrices(prices, input);
  return divideUp(input * inputPrice + output * outputPrice, MILLION);
}

/**
 * Returns how many output tokens `nanoUsd` pays for after the prompt in the worst case; undefined
 * when they are free.
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
  return [worst(prices.input, prices.cachedInput), worst(prices.output, prices.reasoning)];
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
