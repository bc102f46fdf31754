import type { TokenPrices } from './prices.ts';

/** One alias of the catalog, ready for use. */
export interface ModelEntry {
  readonly alias: string;
  readonly baseUrl: string;
  /** The variable that holds the provider key; undefined for providers that ask for none. */
  readonly keyVariable: string | undefined;
  /** The provider's name of the model. */
  readonly providerModel: string;
  /** Tokens that prompt and answer may have together; undefined when unknown. */
  readonly contextWindow: number | undefined;
  /** Output tokens that are asked for when a request names none, and the most it may name. */
  readonly maxOutputTokens: number;
  /** Longest wait for one attempt, in milliseconds. */
  readonly timeoutMs: number;
  /** Further attempts after a recoverable failure (EM-8). */
  readonly maxRetries: number;
  /** Calls at the provider at the same time; undefined = unlimited. */
  readonly maxInFlight: number | undefined;
  /** Calls that may wait for that. */
  readonly maxQueued: number;
  /** Whether answers are streamed; off for servers that cannot. */
  readonly streaming: boolean;
  /** The name under which the provider takes the output cap. */
  readonly outputCapField: 'max_tokens' | 'max_completion_tokens';
  /** Prices that the catalog sets itself; the rest comes from the price list. */
  readonly prices: Partial<TokenPrices>;
  /** The name that the price list is asked for. */
  readonly pricedAs: string;
}
