import { join } from 'node:path';
import { toJson } from '@bufbuild/protobuf';
import { DurationSchema, durationFromMs } from '@bufbuild/protobuf/wkt';
import { type JsonSchema, loadYaml, parseDuration } from '@writ/config';
import type { JsonObject } from '@writ/kernel';

/** A tool of the suite in tools.yaml. */
export interface ToolDefinitionRow {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonObject;
  readonly side_effect: string;
  readonly timeout?: string;
  readonly max_output_bytes?: number;
  readonly max_calls_per_agent?: number;
  readonly max_repeats?: number;
  readonly risk: number;
}

const SCHEMA: JsonSchema = { type: 'object', required: ['tools'] };

/** Reads the tools of the suite from tools.yaml. Every gateway under test must serve these tools. */
export function loadSuiteTools(folder: string): readonly ToolDefinitionRow[] {
  const file = join(folder, 'tools.yaml');
  return loadYaml<{ readonly tools: readonly ToolDefinitionRow[] }>(file, SCHEMA).value.tools;
}

/** The expected ListTools entry of a tool. */
export function listedAs(row: ToolDefinitionRow): JsonObject {
  return {
    name: row.name,
    description: row.description,
    side_effect: `SIDE_EFFECT_${row.side_effect.toUpperCase()}`,
    timeout: toJson(DurationSchema, durationFromMs(parseDuration(row.timeout ?? '30s', 'timeout'))),
    max_output_bytes: row.max_output_bytes ?? 65_536,
    max_calls_per_agent: row.max_calls_per_agent ?? 2,
    max_repeats: row.max_repeats ?? 1,
    risk: row.risk,
  };
}
