/** Settings from which a test's models.yaml is generated. */
export interface ModelsYaml {
  /** A complete file instead of one alias for each script. */
  readonly models?: string | undefined;
  /** Names of the scripts that get an alias. */
  readonly scripts: readonly string[];
  /** One line of the template that all aliases use, such as `max_retries: 0`. */
  readonly settings?: string | undefined;
  readonly tenants?: string | undefined;
}

/** 1,000 nano-USD per token, input and output. */
export const PRICES = 'prices: { input_per_million_usd: "1.00", output_per_million_usd: "1.00" }';

/** Returns a variable reference for models.yaml. */
export function reference(name: string): string {
  return `\${${name}}`;
}

/** Returns a models.yaml with the simulator as provider. */
export function modelsYaml({ models, scripts, settings = '', tenants = '' }: ModelsYaml): string {
  if (models !== undefined) return `${models}\n${tenants}`;
  return [
    'templates:',
    '  sim:',
    `    base_url: ${reference('SIM_URL')}`,
    '    api_key_env: SIM_KEY',
    '    max_output_tokens: 100',
    '    timeout: 5s',
    `    ${settings.includes('prices') ? settings : `${PRICES}\n    ${settings}`}`,
    'models:',
    ...scripts.map((name) => `  ${name}: { template: sim, model: "sim:${name}" }`),
    tenants,
  ].join('\n');
}
