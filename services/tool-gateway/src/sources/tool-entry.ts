import { ConfigError, parseDuration } from '@writ/config';
import type { JsonObject } from '@writ/kernel';
import type { ToolDefinition } from '../domain/tool.ts';
import type { OfferedTool } from './offered-tool.ts';
import type { ToolEntry } from './tools-schema.ts';

const DEFAULTS = {
  timeoutMs: 30_000,
  maxOutputBytes: 65_536,
  maxCallsPerAgent: 2,
  maxRepeats: 1,
} as const;

/** Longest time limit of a tool. */
export const MAX_TIMEOUT_MS = 3_600_000;

/** What somebody has to say of a tool: tools.yaml, or else its source. */
const NEEDED = ['description', 'input_schema', 'side_effect', 'risk'] as const;

/** Names of what an entry must say and does not, where its source offers nothing. */
export function missingIn(entry: ToolEntry): readonly string[] {
  return NEEDED.filter((name) => entry[name] === undefined);
}

/**
 * The definition of a tool: what tools.yaml says, then what its source offers, then the defaults.
 * @throws ConfigError when `timeout` is no duration or out of bounds
 */
export function toDefinition(entry: ToolEntry, offered: Partial<OfferedTool> = {}): ToolDefinition {
  return {
    name: entry.name,
    description: (entry.description ?? offered.description ?? '').trim(),
    inputSchema: (entry.input_schema as JsonObject | undefined) ?? offered.inputSchema ?? {},
    sideEffect: entry.side_effect ?? offered.sideEffect ?? 'destructive',
    timeoutMs: readTimeout(entry) ?? offered.timeoutMs ?? DEFAULTS.timeoutMs,
    maxOutputBytes: entry.max_output_bytes ?? DEFAULTS.maxOutputBytes,
    maxCallsPerAgent:
      entry.max_calls_per_agent ?? offered.maxCallsPerAgent ?? DEFAULTS.maxCallsPerAgent,
    maxRepeats: entry.max_repeats ?? offered.maxRepeats ?? DEFAULTS.maxRepeats,
    risk: entry.risk ?? offered.risk ?? 1,
    source: entry.source,
  };
}

function readTimeout({ timeout }: ToolEntry): number | undefined {
  if (timeout === undefined) return undefined;
  const timeoutMs = parseDuration(timeout, 'timeout');
  if (timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS) return timeoutMs;
  throw new ConfigError('timeout', ['timeout must be from 1ms to 1h.']);
}
