import { fileURLToPath } from 'node:url';

/** The entry of a test tool in tools.yaml; every tool has the arguments `to` (required) and `cents`. */
interface WorldTool {
  readonly side_effect: 'read_only' | 'idempotent' | 'destructive';
  readonly timeout?: string;
  readonly max_output_bytes?: number;
  readonly max_calls_per_agent?: number;
  readonly max_repeats?: number;
  /** Default `world`. */
  readonly source?: string;
}

/** One tool of each side effect, with high limits. */
export const TOOLS: Readonly<Record<string, WorldTool>> = {
  pay: { side_effect: 'destructive', max_calls_per_agent: 100, max_repeats: 100 },
  charge: { side_effect: 'idempotent', max_calls_per_agent: 100, max_repeats: 100 },
  look: { side_effect: 'read_only', max_calls_per_agent: 100, max_repeats: 100 },
};

/** Options of {@link toolsYaml}. */
export interface ToolsSettings {
  /** Default {@link TOOLS}. */
  readonly tools?: Readonly<Record<string, WorldTool>>;
  readonly allow?: object;
  /** Settings of the source `world`. */
  readonly world?: object;
  /** Sources in addition to `world`. */
  readonly sources?: object;
}

const WORLD_TOOLS = fileURLToPath(new URL('./modules/world-tools.ts', import.meta.url));

/**
 * Returns the text of a tools.yaml. A World (world.ts) records the executions of the tools of the source `world`, which
 * is the default source of a tool.
 */
export function toolsYaml({ tools = TOOLS, allow, world, sources }: ToolsSettings): string {
  return JSON.stringify({
    tools: Object.entries(tools).map(([name, tool]) => ({
      name,
      description: `The tool ${name}.`,
      input_schema: {
        type: 'object',
        properties: { to: { type: 'string' }, cents: { type: 'integer' } },
        required: ['to'],
      },
      risk: 0.5,
      source: 'world',
      ...tool,
    })),
    sources: {
      world: { kind: 'local', module: WORLD_TOOLS, ...world },
      ...sources,
    },
    ...(allow && { allow }),
  });
}
