import { ConfigError, parseDuration } from '@writ/config';
import { type JsonObject, MAX_TOOL_TIMEOUT_MS, omitUndefined } from '@writ/kernel';
import type { CallLimits, ToolDefinition } from '../domain/tool.ts';
import type { OfferedTool } from './source.ts';
import type { ToolEntry } from './tools-schema.ts';

const DEFAULTS = {
  timeoutMs: 30_000,
  maxOutputBytes: 65_536,
  maxCallsPerAgent: 2,
  maxRepeats: 1,
} as const;

/** Fields without a default: tools.yaml or the source must set them. */
const REQUIRED = ['description', 'input_schema', 'side_effect', 'risk'] as const;

/** The required fields that an entry does not set. */
export function missingIn(entry: ToolEntry): readonly string[] {
  return REQUIRED.filter((name) => entry[name] === undefined);
}

/**
 * The definition of a tool from tools.yaml, the source's offer and the defaults, in this order of precedence.
 * @throws ConfigError when `timeout` is not a duration or out of range
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
    maxRepeats: entry.max_repeats ?? DEFAULTS.maxRepeats,
    risk: entry.risk ?? offered.risk ?? 1,
    source: entry.source,
  };
}

/** Returns the limits that an entry sets, without limits of its source and without defaults. */
export function limitsIn(entry: ToolEntry): Partial<CallLimits> {
  const { max_calls_per_agent: maxCallsPerAgent, max_repeats: maxRepeats } = entry;
  return omitUndefined({ maxCallsPerAgent, maxRepeats });
}

function readTimeout({ timeout }: ToolEntry): number | undefined {
  if (timeout === undefined) return undefined;
  const timeoutMs = parseDuration(timeout, 'timeout');
  if (timeoutMs >= 1 && timeoutMs <= MAX_TOOL_TIMEOUT_MS) return timeoutMs;
  throw new ConfigError('timeout', ['timeout must be from 1ms to 1h.']);
}
