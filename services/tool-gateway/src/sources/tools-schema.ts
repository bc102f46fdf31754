import type { JsonSchema } from '@writ/config';
import { about, TOOL_NAME_PATTERN } from '@writ/kernel';
import { SIDE_EFFECTS, type SideEffect } from '../domain/tool.ts';

/**
 * A tool in tools.yaml. Fields that are omitted for a tool of an MCP server or for the built-in tool take the values
 * that the source offers, or else the defaults.
 */
export interface ToolEntry {
  readonly name: string;
  readonly description?: string;
  readonly input_schema?: Readonly<Record<string, unknown>>;
  readonly side_effect?: SideEffect;
  readonly timeout?: string;
  readonly max_output_bytes?: number;
  readonly max_calls_per_agent?: number;
  readonly max_repeats?: number;
  readonly risk?: number;
  readonly source: string;
}

/** An MCP server in tools.yaml. */
export type McpEntry =
  | { readonly kind: 'mcp'; readonly url: string; readonly headers?: Texts }
  | {
      readonly kind: 'mcp';
      readonly command: string;
      readonly args?: readonly string[];
      readonly env?: Texts;
    };

type Texts = Readonly<Record<string, string>>;

/** A source in tools.yaml. */
export type SourceEntry = (
  | { readonly kind: 'local'; readonly module: string }
  | { readonly kind: 'provider'; readonly address: string; readonly tls?: boolean }
  | {
      readonly kind: 'builtin';
      readonly allow_hosts?: readonly string[];
      readonly allow_ports?: readonly number[];
    }
  | McpEntry
) & { readonly max_in_flight?: number; readonly max_queued?: number };

/** The document tools.yaml. */
export interface ToolsDocument {
  readonly tools: readonly ToolEntry[];
  readonly sources: Readonly<Record<string, SourceEntry>>;
  readonly allow?: {
    readonly agents?: Readonly<Record<string, readonly string[]>>;
    readonly tenants?: Readonly<Record<string, readonly string[]>>;
  };
}

/** Upper limit of max_output_bytes: half of the largest gRPC message (4 MiB). */
const MAX_OUTPUT_BYTES = 2 * 1024 * 1024;

const TOOL_NAME = {
  type: 'string',
  pattern: TOOL_NAME_PATTERN.source,
  'x-expected': '1 to 64 letters, digits, underscores and hyphens',
} as const;
const ID = {
  type: 'string',
  pattern: '^[a-z0-9_-]{1,64}$',
  'x-expected': '1 to 64 characters from a-z, 0-9, underscore and hyphen',
} as const;
const NEVER_CALLED = 'disables the tool; omit it for the default';

const concurrency = {
  max_in_flight: about(
    'Maximum number of concurrent calls across all replicas.',
    { type: 'integer', minimum: 1, maximum: 10_000 },
    { default: '32', unit: 'calls' },
  ),
  max_queued: about(
    'Maximum number of calls that wait while max_in_flight is reached.',
    { type: 'integer', minimum: 0, maximum: 100_000 },
    { default: '256', unit: 'calls' },
  ),
} as const;

type Settings = Readonly<Record<string, object>>;

const TEXT = { type: 'string', minLength: 1 } as const;
const TEXTS = { type: 'object', additionalProperties: { type: 'string' } } as const;

const source = (kind: string, settings: Settings, optional: Settings = {}) => ({
  title: `a source with kind: ${kind}`,
  type: 'object',
  additionalProperties: false,
  required: ['kind', ...Object.keys(settings)],
  properties: {
    kind: about('Kind of the source.', { const: kind }),
    ...settings,
    ...optional,
    ...concurrency,
  },
});

const allowlist = {
  type: 'object',
  propertyNames: { pattern: '^([a-z0-9_-]{1,64}|\\*)$' },
  additionalProperties: { type: 'array', items: { type: 'string' } },
} as const;

/** JSON Schema of tools.yaml. */
export const TOOLS_SCHEMA: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['tools', 'sources'],
  properties: {
    tools: about('The tools.', {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'source'],
        properties: {
          name: about('Name, unique in the file; models, policies and agents use it.', TOOL_NAME),
          description: about(
            'Description of the tool, shown to the model.',
            { type: 'string', minLength: 1, maxLength: 4_096 },
            {
              default: 'required for local and provider sources, otherwise the value of the source',
            },
          ),
          input_schema: about(
            'JSON Schema 2020-12 of the arguments, in which the additional keywords `fillable` and `decimals` are permitted.',
            { type: 'object' },
            {
              default: 'required for local and provider sources, otherwise the value of the source',
            },
          ),
          side_effect: about(
            'Effect of the tool, which decides what happens to a call whose outcome is unknown.',
            { enum: SIDE_EFFECTS },
            {
              default:
                'required for local and provider sources; destructive for MCP, otherwise the value of the source',
            },
          ),
          timeout: about(
            'Time after which a call is aborted, from 1ms to 1h.',
            { type: 'string' },
            { default: 'the value of the source, otherwise 30s' },
          ),
          max_output_bytes: about(
            'Maximum size of a result; a larger result is truncated and marked as truncated.',
            { type: 'integer', minimum: 1, maximum: MAX_OUTPUT_BYTES },
            { default: '65536', unit: 'bytes' },
          ),
          max_calls_per_agent: about(
            'Maximum number of calls by one agent of a run.',
            { type: 'integer', minimum: 0, 'x-zero': NEVER_CALLED },
            {
              default: 'the value of the source, otherwise 2; unlimited for external agents',
              unit: 'calls',
            },
          ),
          max_repeats: about(
            'Maximum number of calls with the same arguments by one agent of a run.',
            { type: 'integer', minimum: 0, 'x-zero': NEVER_CALLED },
            {
              default: '1; for external agents unlimited',
              unit: 'calls',
            },
          ),
          risk: about(
            'Risk for policies and approval_required_risk; 0.8 is 80 in policies.',
            { type: 'number', minimum: 0, maximum: 1, 'x-expected': 'a number from 0 to 1' },
            {
              default:
                'required for local and provider sources; 1 for MCP, otherwise the value of the source',
            },
          ),
          source: about('Name of the source that executes the tool.', ID),
        },
      },
    }),
    sources: about('Sources by name.', {
      type: 'object',
      propertyNames: ID,
      additionalProperties: {
        oneOf: [
          source('local', {
            module: about(
              'TypeScript module that exports `createTools`, relative to the file.',
              TEXT,
            ),
          }),
          source(
            'provider',
            { address: about('Address host:port of a ToolProviderService.', TEXT) },
            {
              tls: about(
                'With true, the connection uses TLS if the connections between the services do; with false, it always uses cleartext.',
                { type: 'boolean' },
                { default: 'true' },
              ),
            },
          ),
          source(
            'mcp',
            { url: about('URL of an MCP server that uses the Streamable HTTP transport.', TEXT) },
            { headers: about('HTTP headers.', TEXTS, { default: 'none' }) },
          ),
          source(
            'mcp',
            {
              command: about(
                'Command that starts an MCP server that uses the stdio transport.',
                TEXT,
              ),
            },
            {
              args: about(
                'Arguments of the command.',
                { type: 'array', items: { type: 'string' } },
                { default: 'none' },
              ),
              env: about('Environment variables of the command.', TEXTS, { default: 'none' }),
            },
          ),
          source(
            'builtin',
            {},
            {
              allow_hosts: about(
                'Non-public addresses, as host:port, to which http_fetch may connect.',
                { type: 'array', items: TEXT },
                { default: 'none' },
              ),
              allow_ports: about(
                'Additional ports on public hosts to which http_fetch may connect.',
                {
                  type: 'array',
                  items: { type: 'integer', minimum: 1, maximum: 65_535 },
                },
                { default: 'only 80 and 443' },
              ),
            },
          ),
        ],
      },
    }),
    allow: about('Restriction of the tools that agents and tenants may call.', {
      type: 'object',
      additionalProperties: false,
      properties: {
        agents: about(
          'Tools by agent; `*` applies to agents that are not named. Without `*`, these agents may not call any tool.',
          allowlist,
          {
            default: 'all tools',
          },
        ),
        tenants: about(
          'Tools by tenant; `*` applies to tenants that are not named. Without `*`, these tenants may not call any tool.',
          allowlist,
          {
            default: 'all tools',
          },
        ),
      },
    }),
  },
};
