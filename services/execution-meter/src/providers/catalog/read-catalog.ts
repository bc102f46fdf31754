import { ConfigError, type DataPath, loadYaml, parseDuration, type YamlInput } from '@writ/config';
import { isWritError, parseUsd } from '@writ/kernel';
import { Catalog, type CatalogModel, type TenantCaps } from '../../domain/catalog/catalog.ts';
import { flatRate, type Rate, type TokenPrices } from '../../domain/catalog/prices.ts';
import { substitute, type Variables } from '../../domain/catalog/variables.ts';
import type { Caps } from '../../domain/ledger/amount.ts';
import {
  CATALOG_SCHEMA,
  type CapSettings,
  type CatalogSettings,
  type ModelSettings,
  type PriceSettings,
} from './catalog-schema.ts';

/** A catalog with the warnings of its file. */
export interface LoadedCatalog {
  readonly catalog: Catalog;
  readonly warnings: readonly string[];
}

const DEFAULTS = {
  maxOutputTokens: 4_096,
  timeout: '60s',
  maxRetries: 2,
  maxQueued: 1_000,
} as const;

/**
 * Reads models.yaml: aliases, templates and tenant caps. An alias that references a variable
 * without a value is rejected when it is used, not at load.
 * @throws ConfigError with file, line and the expected value
 */
export function readCatalog(
  input: YamlInput,
  variables: Variables,
  overrides: Readonly<Record<string, ModelSettings>> = {},
): LoadedCatalog {
  const { value, warnings, locate } = loadYaml<CatalogSettings>(input, CATALOG_SCHEMA);
  const file = typeof input === 'string' ? input : input.file;
  const problems: string[] = [];
  const models = new Map<string, CatalogModel>();
  for (const alias of new Set([...Object.keys(value.models), ...Object.keys(overrides)])) {
    const own: ModelSettings = { ...value.models[alias], ...overrides[alias] };
    const at = (...path: DataPath): string => locate(['models', alias, ...path]);
    const base = own.template === undefined ? {} : value.templates?.[own.template];
    if (base === undefined) {
      problems.push(`${at('template')}: template ${own.template} does not exist.`);
      continue;
    }
    try {
      models.set(alias, readModel(alias, { ...base, ...own }, variables, at));
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new ConfigError(file, problems);
  return { catalog: new Catalog(models, readTenants(value.tenants ?? {})), warnings };
}

function readModel(
  alias: string,
  settings: ModelSettings,
  variables: Variables,
  at: (...path: DataPath) => string,
): CatalogModel {
  const fill = (field: 'base_url' | 'model' | 'timeout', fallback?: string) => {
    const text = settings[field] ?? fallback;
    if (text === undefined) throw problem(`${at()}: models.${alias} needs ${field}`);
    return substitute(text, variables);
  };
  const [baseUrl, providerModel, timeout] = [
    fill('base_url'),
    fill('model'),
    fill('timeout', DEFAULTS.timeout),
  ];
  if ('missing' in baseUrl) return { alias, missingVariable: baseUrl.missing };
  if ('missing' in providerModel) return { alias, missingVariable: providerModel.missing };
  if ('missing' in timeout) return { alias, missingVariable: timeout.missing };
  const url = URL.parse(baseUrl.text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw problem(`${at('base_url')}: base_url must be an http or https URL`);
  }
  return {
    entry: {
      alias,
      baseUrl: baseUrl.text,
      api: settings.api ?? (url.hostname === 'api.anthropic.com' ? 'anthropic' : 'openai'),
      keyVariable: settings.api_key_env,
      providerModel: providerModel.text,
      contextWindow: settings.context_window,
      maxOutputTokens: settings.max_output_tokens ?? DEFAULTS.maxOutputTokens,
      timeoutMs: readTimeout(timeout.text, at('timeout')),
      maxRetries: settings.max_retries ?? DEFAULTS.maxRetries,
      maxInFlight: settings.max_in_flight,
      maxQueued: settings.max_queued ?? DEFAULTS.maxQueued,
      streaming: settings.streaming ?? true,
      // Newer OpenAI models reject max_tokens; most other servers support only max_tokens.
      outputCapField:
        settings.output_cap_field ??
        (url.hostname === 'api.openai.com' ? 'max_completion_tokens' : 'max_tokens'),
      prices: settings.prices === undefined ? {} : readPrices(settings.prices),
      pricedAs: settings.priced_as ?? providerModel.text,
    },
  };
}

function readTimeout(text: string, place: string): number {
  try {
    const milliseconds = parseDuration(text, 'timeout');
    if (milliseconds >= 1 && milliseconds <= 3_600_000) return milliseconds;
  } catch (error) {
    if (!isWritError(error)) throw error;
  }
  throw problem(`${place}: timeout must be a duration from 1ms to 1h with a unit, such as 60s`);
}

function readPrices(settings: PriceSettings): Partial<TokenPrices> {
  const prices: { -readonly [K in keyof TokenPrices]?: Rate } = {};
  for (const [price, name] of PRICE_NAMES) {
    const field = `${name}_per_million_usd` as const;
    const text = settings[field];
    if (text !== undefined) prices[price] = flatRate(parseUsd(text, field));
  }
  return prices;
}

/** The prices and their names in the catalog. */
const PRICE_NAMES = [
  ['input', 'input'],
  ['cachedInput', 'cached_input'],
  ['cacheWrite', 'cache_write'],
  ['longCacheWrite', 'cache_write_1h'],
  ['output', 'output'],
  ['reasoning', 'reasoning'],
] as const;

function readTenants(
  tenants: NonNullable<CatalogSettings['tenants']>,
): ReadonlyMap<string, TenantCaps> {
  return new Map(
    Object.entries(tenants).map(([tenant, { day = {}, month = {} }]) => [
      tenant,
      { day: readCaps(day), month: readCaps(month) },
    ]),
  );
}

function readCaps({ max_tokens, max_cost_usd, max_turns }: CapSettings): Caps {
  return {
    ...(max_tokens === undefined ? {} : { tokens: BigInt(max_tokens) }),
    ...(max_cost_usd === undefined ? {} : { cost: parseUsd(max_cost_usd, 'max_cost_usd') }),
    ...(max_turns === undefined ? {} : { turns: BigInt(max_turns) }),
  };
}

function problem(sentence: string): ConfigError {
  return new ConfigError('models.yaml', [`${sentence}.`]);
}
