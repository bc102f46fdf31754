import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import type { ToolInfo } from '../../domain/calls/tool-call.ts';

/** What the model is told of a tool: a word or two per argument instead of its schema. */
export function toolCatalog(tools: readonly ToolInfo[]): JsonObject[] {
  return tools.map(({ name, description, inputSchemaJson }) => ({
    name,
    description,
    args: argumentSummary(inputSchemaJson),
  }));
}

function argumentSummary(inputSchemaJson: string): JsonObject {
  const schema: JsonValue = JSON.parse(inputSchemaJson === '' ? '{}' : inputSchemaJson);
  if (!isJsonObject(schema) || !isJsonObject(schema.properties)) return {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.fromEntries(
    Object.entries(schema.properties).map(([name, property]) => {
      const mayBeMissing = !required.includes(name) || isFillable(property);
      return [name, `${mayBeMissing ? 'optional ' : ''}${typeOf(property)}`];
    }),
  );
}

function isFillable(property: JsonValue): boolean {
  return isJsonObject(property) && property.fillable === true;
}

function typeOf(property: JsonValue): string {
  if (!isJsonObject(property)) return 'any';
  const { type, enum: values } = property;
  if (Array.isArray(values))
    return `one of ${values.map((value) => JSON.stringify(value)).join(', ')}`;
  if (typeof type === 'string') return type;
  return Array.isArray(type) ? type.join(' or ') : 'any';
}
