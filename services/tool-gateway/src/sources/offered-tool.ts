import type { ToolDefinition } from '../domain/tool.ts';

/** A tool as its source describes it; what tools.yaml says of it counts more. */
export type OfferedTool = Pick<
  ToolDefinition,
  'description' | 'inputSchema' | 'sideEffect' | 'risk'
> &
  Partial<Pick<ToolDefinition, 'timeoutMs' | 'maxCallsPerAgent' | 'maxRepeats'>>;

/** Tools by name, by the source that describes them. */
export type Offers = ReadonlyMap<string, Readonly<Record<string, OfferedTool>>>;
