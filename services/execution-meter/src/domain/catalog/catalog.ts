import { NotFoundError, PermissionDeniedError, PreconditionError } from '@writ/kernel';
import type { Caps } from '../ledger/amount.ts';
import type { TokenPrices } from './prices.ts';

/** The API of a provider: OpenAI's, which many servers implement, or Anthropic's. */
export type ProviderApi = 'openai' | 'anthropic';

/** One usable alias of the catalog. */
export interface ModelEntry {
  readonly alias: string;
  readonly baseUrl: string;
  readonly api: ProviderApi;
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
  /**
   * Maximum concurrent calls of this alias, over all replicas; a call counts until its end, including the back-off
   * between its attempts. Undefined: unlimited.
   */
  readonly maxInFlight: number | undefined;
  /** Maximum number of calls of this alias that wait for a slot, over all replicas. */
  readonly maxQueued: number;
  /** Whether answers are streamed; false for servers without streaming. */
  readonly streaming: boolean;
  /** Request field of the output cap. */
  readonly outputCapField: 'max_tokens' | 'max_completion_tokens';
  /**
   * Prices set in the catalog. If they include both the input and the output price, the price list is not used;
   * otherwise the other prices come from the price list.
   */
  readonly prices: Partial<TokenPrices>;
  /** Name of the model in the price list. */
  readonly pricedAs: string;
}

/** A usable alias, or an alias with the missing variable that it requires. */
export type CatalogModel =
  | { readonly entry: ModelEntry }
  | { readonly alias: string; readonly missingVariable: string };

/** Caps of a tenant per UTC day and month; unset is unlimited. */
export interface TenantCaps {
  readonly day: Caps;
  readonly month: Caps;
}

const NO_TENANT_CAPS: TenantCaps = { day: {}, month: {} };

/** Key of the caps for tenants that the catalog does not list. */
const ANY_TENANT = '*';
/** Maximum number of models that an error lists. */
const MAX_LISTED = 30;

/** Content of models.yaml: aliases with their providers, and tenant caps. */
export class Catalog {
  #models: ReadonlyMap<string, CatalogModel>;
  #tenants: ReadonlyMap<string, TenantCaps>;

  constructor(
    models: ReadonlyMap<string, CatalogModel>,
    tenants: ReadonlyMap<string, TenantCaps> = new Map(),
  ) {
    this.#models = models;
    this.#tenants = tenants;
  }

  /**
   * Replaces the content with that of another catalog. The new models apply to calls that begin afterwards; the new
   * tenant caps apply to every later booking.
   */
  replaceBy(other: Catalog): void {
    this.#models = other.#models;
    this.#tenants = other.#tenants;
  }

  /** All aliases in file order. */
  get aliases(): readonly string[] {
    return [...this.#models.keys()];
  }

  /** Returns the model of an alias, usable or not; undefined when the catalog does not contain the alias. */
  modelOf(alias: string): CatalogModel | undefined {
    return this.#models.get(alias);
  }

  /**
   * Returns the model of an alias for an agent that is allowed to use `allowed` (EM-6).
   * @throws NotFoundError UNKNOWN_MODEL, PermissionDeniedError MODEL_NOT_ALLOWED; PreconditionError
   *   MODEL_VARIABLE_MISSING when the alias references a variable that is not set
   */
  find(alias: string, allowed: readonly string[]): ModelEntry {
    const model = this.#models.get(alias);
    if (model === undefined) {
      throw new NotFoundError(
        'UNKNOWN_MODEL',
        `Model ${alias} does not exist in the models file. Available models: ${shortList(this.aliases)}.`,
        { field: 'model', model: alias },
      );
    }
    if (!allowed.includes(alias)) {
      throw new PermissionDeniedError(
        'MODEL_NOT_ALLOWED',
        `Model ${alias} is not allowed for this agent. Allowed models: ${allowed.join(', ') || 'none'}.`,
        { field: 'model', model: alias },
      );
    }
    return requireEntry(model);
  }

  /** Returns the usable models among `allowed`, or among all aliases when `allowed` is undefined. */
  list(allowed: readonly string[] | undefined): readonly ModelEntry[] {
    return [...this.#models]
      .filter(([alias]) => allowed === undefined || allowed.includes(alias))
      .flatMap(([, model]) => ('entry' in model ? [model.entry] : []));
  }

  /** Returns the caps of a tenant, or the caps of `*` if the catalog does not list the tenant. */
  tenantCaps(tenant: string): TenantCaps {
    return this.#tenants.get(tenant) ?? this.#tenants.get(ANY_TENANT) ?? NO_TENANT_CAPS;
  }
}

/** Returns the first names of a list, and the number of the remaining names. */
function shortList(names: readonly string[]): string {
  const shown = names.slice(0, MAX_LISTED).join(', ') || 'none';
  return names.length > MAX_LISTED ? `${shown} and ${names.length - MAX_LISTED} more` : shown;
}

function requireEntry(model: CatalogModel): ModelEntry {
  if ('entry' in model) return model.entry;
  const { alias, missingVariable } = model;
  throw new PreconditionError(
    'MODEL_VARIABLE_MISSING',
    `Model ${alias} requires variable ${missingVariable}, which is not set. Set it and restart execution-meter.`,
    { model: alias, variable: missingVariable },
  );
}
