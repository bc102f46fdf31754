import type { TokenPrices } from './prices.ts';

/** One usable alias of the catalog. */
export interface ModelEntry {
  readonly alias: string;
  readonly baseUrl: string;
  /** Variable that contains the provider key; undefined for providers without authentication. */
  readonly keyVariable: string | undefined;
  /** The provider's name of the model. */
  readonly providerModel: string;
  /** Maximum tokens of prompt and answer together; undefined when unknown. */
  readonly contextWindow: number | undefined;
  /** Default and maximum of the output tokens of a request. */
  readonly maxOutputTokens: number;
  /** Time limit of one attempt, in milliseconds. */
  readonly timeoutMs: number;
  /** Further attempts after a recoverable failure (EM-8). */
  readonly maxRetries: number;
  /** Maximum concurrent calls to the provider; undefined = unlimited. */
  readonly maxInFlight: number | undefined;
  /** Maximum calls that wait for a slot. */
  readonly maxQueued: number;
  /** Whether answers are streamed; false for servers without streaming. */
  readonly streaming: boolean;
  /** Request field of the output cap. */
  readonly outputCapField: 'max_tokens' | 'max_completion_tokens';
  /** Prices set in the catalog; the others come from the price list. */
  readonly prices: Partial<TokenPrices>;
  /** Name of the model in the price list. */
  readonly pricedAs: string;
}
