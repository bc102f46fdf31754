import { parseDuration } from '@writ/config';
import type { AgentDefinition, AgentSettings } from '../../domain/manifest/agent-definition.ts';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import { assertApplicable, type Extensions } from '../../domain/manifest/applicable-settings.ts';
import { completeManifest } from '../../domain/manifest/complete-manifest.ts';
import { AGENT_SCHEMA } from './agents-schema.ts';
import { DURATION } from './schema-values.ts';

/** The schema keywords that `read` uses. */
interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly pattern?: string;
  readonly default?: unknown;
}

/**
 * The manifest of settings that conform to AGENT_SCHEMA, with all defaults and its hash (AG-1, AG-10).
 * @throws InvalidRequestError INVALID_BUDGET, INVALID_AMOUNT, DELTAS_BYPASS_REDACTION, MODEL_REQUIRED,
 *   MODEL_NOT_APPLICABLE, SETTING_NOT_APPLICABLE, UNKNOWN_MIDDLEWARE, INVALID_MANIFEST naming the field
 */
export function manifestOf(settings: AgentSettings, extensions: Extensions = {}): AgentManifest {
  assertApplicable(settings, extensions);
  return completeManifest(read(settings, AGENT_SCHEMA as Schema) as AgentDefinition);
}

/** A value with keys in camelCase, durations in milliseconds, and the defaults of its schema. */
function read(value: unknown, { properties, items }: Schema): unknown {
  if (Array.isArray(value)) return value.map((item) => read(item, items ?? {}));
  if (properties === undefined || typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(properties).flatMap(([name, schema]) => {
    const given: unknown = Reflect.get(value, name) ?? schema.default;
    if (given === undefined) return [];
    const key = name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    if (schema.pattern !== DURATION.pattern) return [[key, read(given, schema)]];
    return [[`${key}Ms`, parseDuration(String(given))]];
  });
  return Object.fromEntries(entries);
}
