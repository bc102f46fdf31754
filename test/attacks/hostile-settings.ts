import { fileURLToPath } from 'node:url';

/** Models of the attacker, served by the hostile server. */
export const HOSTILE_MODELS = ['bomb', 'endless', 'pattern', 'nested'] as const;

/** Name of a hostile model. */
export type HostileModel = (typeof HOSTILE_MODELS)[number];

/**
 * Returns entries for the settings files with which a platform uses the models and tools of the hostile server: an
 * agent `<model>-agent` for each model, a tool with a pattern that backtracks, and an MCP server that exceeds its
 * limits.
 * @param keyVariable name of an environment variable with an arbitrary value
 */
export function hostileSettings(url: string, keyVariable: string) {
  return {
    agents: HOSTILE_MODELS.map((model) => ({
      name: `${model}-agent`,
      kind: 'react',
      instructions: 'Attack.',
      model: { model },
      tools: ['mail'],
    })),
    models: Object.fromEntries(
      HOSTILE_MODELS.map((model) => [
        model,
        {
          base_url: `${url}/${model}/v1`,
          api_key_env: keyVariable,
          model,
          priced_as: 'gpt-4.1-mini',
          context_window: 1_000_000,
          max_output_tokens: 4_096,
          timeout: '10s',
          max_retries: 0,
        },
      ]),
    ),
    tools: [
      {
        name: 'mail',
        description: 'Sends a mail.',
        input_schema: {
          type: 'object',
          properties: { email: { type: 'string', pattern: '^([a-zA-Z0-9]+)+@example\\.com$' } },
          required: ['email'],
        },
        side_effect: 'idempotent',
        risk: 0,
        source: 'mail',
      },
    ],
    sources: {
      mail: { kind: 'local', module: fileURLToPath(new URL('mail-tool.ts', import.meta.url)) },
      hostile: { kind: 'mcp', url: `${url}/mcp` },
    },
  };
}
