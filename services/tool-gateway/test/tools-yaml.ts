import { fileURLToPath } from 'node:url';

/** One tool of the test's world; arguments are `to` (required) and `cents`. */
interface WorldTool {
  readonly side_effect: 'read_only' | 'idempotent' | 'destructive';
  readonly timeout?: string;
  readonly max_output_bytes?: number;
  readonly max_calls_per_agent?: number;
  readonly max_repeats?: number;
  /** Default `world`. */
  readonly source?: string;
}

/** The tools that most tests need: one of each side effect, without limits in the way. */
export const TOOLS: Readonly<Record<string, WorldTool>> = {
  pay: { side_effect: 'destructive', max_calls_per_agent: 100, max_repeats: 100 },
  charge: { side_effect: 'idempotent', max_calls_per_agent: 100, max_repeats: 100 },
  look: { side_effect: 'read_only', max_calls_per_agent: 100, max_repeats: 100 },
};

/** What a test may say about the tools of its gateway. */
export interface ToolsSettings {
  /** Default {@link TOOLS}. */
  readonly tools?: Readonly<Record<string, WorldTool>>;
  readonly allow?: object;
  /** Settings of the source `world`. */
  readonly world?: object;
  /** Sources beside `world`. */
  readonly sources?: object;
}

const WORLD_TOOLS = fileURLToPath(new URL('./modules/world-tools.ts', import.meta.url));

/** The text of a tools.yaml whose tools act on a test's world. */
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
