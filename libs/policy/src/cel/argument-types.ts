import type { ObjectSchema } from '@marcbachmann/cel-js';
import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import { matchesGlob } from '../glob.ts';
import type { ToolSchemas } from '../types.ts';

/** CEL types of arguments by name; all JSON numbers, including integers, are doubles. */
export type ArgumentTypes = ObjectSchema;

/**
 * Returns the argument types of all tools that match one of the patterns. An argument whose type
 * differs between tools is `dyn`. Returns undefined when no tool with a schema matches.
 */
export function argumentTypes(
  schemas: ToolSchemas,
  patterns: readonly string[],
): ArgumentTypes | undefined {
  const fitting = Object.keys(schemas).filter((tool) =>
    patterns.some((pattern) => matchesGlob(pattern, tool)),
  );
  if (fitting.length === 0) return undefined;
  const merged: ArgumentTypes = {};
  for (const tool of fitting) {
    for (const [name, type] of Object.entries(objectTypes(schemas[tool] ?? {}))) {
      const known = merged[name];
      const same = known === undefined || JSON.stringify(known) === JSON.stringify(type);
      merged[name] = same ? type : 'dyn';
    }
  }
  return merged;
}

function objectTypes(schema: JsonObject): ArgumentTypes {
  const { properties } = schema;
  if (!isJsonObject(properties)) return {};
  const entries = Object.entries(properties).map(([name, of]) => [name, celType(of)] as const);
  return Object.fromEntries(entries);
}

function celType(schema: JsonValue): string | ArgumentTypes {
  if (!isJsonObject(schema)) return 'dyn';
  switch (schema.type) {
    case 'string':
      return 'string';
    case 'number':
    case 'integer':
      return 'double';
    case 'boolean':
      return 'bool';
    case 'array':
      return listType(schema.items);
    case 'object':
      return isJsonObject(schema.properties) ? objectTypes(schema) : 'map';
    default:
      return 'dyn';
  }
}

function listType(items: JsonValue | undefined): string {
  const type = items === undefined ? 'dyn' : celType(items);
  return `list<${typeof type === 'string' ? type : 'map'}>`;
}
