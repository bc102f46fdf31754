import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readCatalog } from './read-catalog.ts';

const read = (text: string, variables = {}, overrides = {}) =>
  readCatalog({ text, file: 'models.yaml' }, variables, overrides);
const reference = (inside: string): string => `\${${inside}}`;

const MODELS = `models:
  assistant:
    base_url: ${reference('BASE:-https://api.openai.com/v1')}
    api_key_env: OPENAI_API_KEY
    model: ${reference('MODEL')}
    timeout: ${reference('SECONDS:-60')}s
`;

describe('models.yaml', () => {
  it('substitutes variables and defaults', () => {
    const { catalog } = read(MODELS, { MODEL: 'gpt-4.1-mini', SECONDS: ' 2 ' });
    expect(catalog.find('assistant', ['assistant'])).toMatchObject({
      baseUrl: 'https://api.openai.com/v1',
      providerModel: 'gpt-4.1-mini',
      timeoutMs: 2_000,
      maxRetries: 2,
      outputCapField: 'max_completion_tokens',
      pricedAs: 'gpt-4.1-mini',
    });
  });

  it('rejects an alias without its variable only when it is used', () => {
    const { catalog } = read(MODELS, { MODEL: '' });
    expect(catalog.list(undefined)).toEqual([]);
    expect(() => catalog.find('assistant', ['assistant'])).toThrow(
      /assistant requires variable MODEL, which is not set/,
    );
  });

  it('applies templates to aliases, and overrides to the file', () => {
    const { catalog } = read(
      `templates:
  slow: { base_url: "http://127.0.0.1:1/v1", timeout: 9s, max_retries: 0 }
models:
  a: { template: slow, model: one }
  b: { template: slow, model: two, timeout: 400ms }`,
      {},
      { a: { max_in_flight: 3 }, c: { template: 'slow', model: 'three' } },
    );
    expect(catalog.list(undefined)).toMatchObject([
      { alias: 'a', timeoutMs: 9_000, maxRetries: 0, maxInFlight: 3, outputCapField: 'max_tokens' },
      { alias: 'b', timeoutMs: 400 },
      { alias: 'c', providerModel: 'three' },
    ]);
  });

  it.each([
    [MODELS, { MODEL: 'm', SECONDS: 'soon' }, /models\.yaml:6:14: timeout must be a duration/],
    [
      MODELS,
      { MODEL: 'm', BASE: 'api' },
      /models\.yaml:3:15: base_url must be an http or https URL/,
    ],
    ['models: { a: { template: none } }', {}, /models\.yaml:1:26: template none does not exist/],
    ['models: { a: { model: x } }', {}, /needs base_url/],
    ['models: {}', {}, /models\.yaml:1:/],
    [
      'templates: { a: { template: b } }\nmodels: { m: { model: x, base_url: "http://x" } }',
      {},
      /unknown key "template"/,
    ],
    ['models: { a: { base_url: "http://x", model: x, key: sk-1 } }', {}, /unknown key "key"/],
    [
      'models: { a: { base_url: "http://x", model: x, prices: { input_per_million_usd: 0.4 } } }',
      {},
      /decimal USD in quotes/,
    ],
    [
      'models: { a: { base_url: "http://x", model: x, api_key_env: sk-abc } }',
      {},
      /never the key itself/,
    ],
  ])('reports the position and the expected value (case %#)', (text, variables, message) => {
    expect(() => read(text, variables)).toThrow(message);
  });

  it('returns the caps of a tenant or those of *, and warns about zeros (EM-3)', () => {
    const { catalog, warnings } = read(`models: { a: { base_url: "http://x", model: x } }
tenants:
  "*": { day: { max_cost_usd: "5.00" }, month: { max_tokens: 1000 } }
  acme: { day: { max_turns: 0 } }`);
    expect(catalog.tenantCaps('other')).toEqual({
      day: { cost: 5_000_000_000n },
      month: { tokens: 1000n },
    });
    expect(catalog.tenantCaps('acme')).toEqual({ day: { turns: 0n }, month: {} });
    expect(warnings).toEqual([expect.stringContaining('models.yaml:4:29: max_turns is 0')]);
  });
});

it('has a priced alias for every script of the refund desk and one for a real model', () => {
  const folder = fileURLToPath(new URL('../../../../../examples/refund-desk/', import.meta.url));
  const scripts = readdirSync(`${folder}scripts`)
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => basename(file, '.yaml'));
  const variables = { WRIT_SIMULATOR_URL: 'http://127.0.0.1:1/v1' };
  const { catalog, warnings } = readCatalog(`${folder}models.yaml`, variables);
  expect(warnings).toEqual([]);
  const aliases = ['refund-desk', ...scripts.map((name) => `sim-${name}`)];
  expect(catalog.aliases.toSorted()).toEqual(aliases.toSorted());
  const models = catalog.list(undefined);
  expect(models.map(({ pricedAs }) => pricedAs)).toEqual(aliases.map(() => 'gpt-4.1-mini'));
  expect(models.find(({ alias }) => alias === 'sim-llm-timeout')).toMatchObject({
    timeoutMs: 400,
    maxRetries: 0,
    providerModel: 'sim:llm-timeout',
  });
});
