import type { JsonSchema } from '@writ/config';
import { TOOL_NAME_PATTERN } from '@writ/kernel';
import { SIDE_EFFECTS, type SideEffect } from '../domain/tool.ts';

/** A tool in tools.yaml; its source may supply missing fields. */
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

/** Largest result that fits a gRPC response, in bytes. */
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
  max_in_flight: { type: 'integer', minimum: 1, maximum: 10_000 },
  max_queued: { type: 'integer', minimum: 0, maximum: 100_000 },
} as const;

type Settings = Readonly<Record<string, object>>;

const TEXT = { type: 'string', minLength: 1 } as const;
const TEXTS = { type: 'object', additionalProperties: { type: 'string' } } as const;

const source = (kind: string, settings: Settings, optional: Settings = {}) => ({
  title: `a source with kind: ${kind}`,
  type: 'object',
  additionalProperties: false,
  required: ['kind', ...Object.keys(settings)],
  properties: { kind: { const: kind }, ...settings, ...optional, ...concurrency },
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
    tools: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'source'],
        properties: {
          name: TOOL_NAME,
          description: { type: 'string', minLength: 1, maxLength: 4_096 },
          input_schema: { type: 'object' },
          side_effect: { enum: SIDE_EFFECTS },
          timeout: { type: 'string' },
          max_output_bytes: { type: 'integer', minimum: 1, maximum: MAX_OUTPUT_BYTES },
          max_calls_per_agent: { type: 'integer', minimum: 0, 'x-zero': NEVER_CALLED },
          max_repeats: { type: 'integer', minimum: 0, 'x-zero': NEVER_CALLED },
          risk: { type: 'number', minimum: 0, maximum: 1, 'x-expected': 'a number from 0 to 1' },
          source: ID,
        },
      },
    },
    sources: {
      type: 'object',
      propertyNames: ID,
      additionalProperties: {
        oneOf: [
          source('local', { module: TEXT }),
          source('provider', { address: TEXT }, { tls: { type: 'boolean' } }),
          source('mcp', { url: TEXT }, { headers: TEXTS }),
          source(
            'mcp',
            { command: TEXT },
            { args: { type: 'array', items: { type: 'string' } }, env: TEXTS },
          ),
          source(
            'builtin',
            {},
            {
              allow_hosts: { type: 'array', items: TEXT },
              allow_ports: {
                type: 'array',
                items: { type: 'integer', minimum: 1, maximum: 65_535 },
              },
            },
          ),
        ],
      },
    },
    allow: {
      type: 'object',
      additionalProperties: false,
      properties: { agents: allowlist, tenants: allowlist },
    },
  },
};
