import { NotFoundError, PermissionDeniedError, PreconditionError } from '@writ/kernel';
import type { Caps } from '../ledger/amount.ts';
import type { ModelEntry } from './model.ts';

/** An alias, or the variable without which it cannot be used. */
export type CatalogModel =
  | { readonly entry: ModelEntry }
  | { readonly alias: string; readonly missingVariable: string };

/** Caps that a tenant has by UTC day and month; unset is unlimited. */
export interface TenantCaps {
  readonly day: Caps;
  readonly month: Caps;
}

const NO_TENANT_CAPS: TenantCaps = { day: {}, month: {} };

/** Applies to tenants that the catalog does not name. */
const ANY_TENANT = '*';

/** Everything that models.yaml says: aliases with their providers, and the caps of tenants. */
export class Catalog {
  readonly #models: ReadonlyMap<string, CatalogModel>;
  readonly #tenants: ReadonlyMap<string, TenantCaps>;

  constructor(
    models: ReadonlyMap<string, CatalogModel>,
    tenants: ReadonlyMap<string, TenantCaps> = new Map(),
  ) {
    this.#models = models;
    this.#tenants = tenants;
  }

  /** Every alias, in the order of the file. */
  get aliases(): readonly string[] {
    return [...this.#models.keys()];
  }

  /**
   * The alias for an agent that may use `allowed` (EM-6).
   * @throws NotFoundError UNKNOWN_MODEL, PermissionDeniedError MODEL_NOT_ALLOWED; PreconditionError
   *   MODEL_VARIABLE_MISSING when the alias refers to a variable that is not set
   */
  find(alias: string, allowed: readonly string[]): ModelEntry {
    const model = this.#models.get(alias);
    if (model === undefined) {
      throw new NotFoundError(
        'UNKNOWN_MODEL',
        `The catalog has no model ${alias}; this agent may use: ${allowed.join(', ') || 'none'}.`,
        { field: 'model', model: alias },
      );
    }
    if (!allowed.includes(alias)) {
      throw new PermissionDeniedError(
        'MODEL_NOT_ALLOWED',
        `The agent's tab does not name model ${alias}; it names: ${allowed.join(', ') || 'none'}.`,
        { field: 'model', model: alias },
      );
    }
    return ready(model);
  }

  /** The usable ones among `allowed`, or of all aliases when it is undefined. */
  list(allowed: readonly string[] | undefined): readonly ModelEntry[] {
    return [...this.#models]
      .filter(([alias]) => allowed === undefined || allowed.includes(alias))
      .flatMap(([, model]) => ('entry' in model ? [model.entry] : []));
  }

  /** The caps of a tenant, or those that `*` gives to tenants that are not named. */
  tenantCaps(tenant: string): TenantCaps {
    return this.#tenants.get(tenant) ?? this.#tenants.get(ANY_TENANT) ?? NO_TENANT_CAPS;
  }
}

function ready(model: CatalogModel): ModelEntry {
  if ('entry' in model) return model.entry;
  const { alias, missingVariable } = model;
  throw new PreconditionError(
    'MODEL_VARIABLE_MISSING',
    `Model ${alias} refers to ${missingVariable}, which is not set; set it and start again.`,
    { model: alias, variable: missingVariable },
  );
}
