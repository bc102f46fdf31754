import type { Tool } from '@modelcontextprotocol/server';
import { SideEffect, type ToolDefinition } from '@writ/contracts/writ/tool/v1/tool_pb';
import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';

/**
 * Converts a tool of the gateway to an MCP tool. The hints are derived from the side effect class that the platform
 * trusts, never from the annotations of the server that provides the tool (TG-6).
 */
export function mcpTool(definition: ToolDefinition): Tool {
  const { name, description, sideEffect, risk } = definition;
  const isReadOnly = sideEffect === SideEffect.READ_ONLY;
  return {
    name,
    description,
    inputSchema: inputSchemaOf(definition),
    annotations: {
      readOnlyHint: isReadOnly,
      destructiveHint: sideEffect === SideEffect.DESTRUCTIVE,
      idempotentHint: isReadOnly || sideEffect === SideEffect.IDEMPOTENT,
      openWorldHint: true,
    },
    _meta: { 'io.writ/risk': risk },
  };
}

/**
 * Returns the input schema without the platform-specific keywords. An argument that policy can fill in is not required.
 */
function inputSchemaOf({ inputSchemaJson }: ToolDefinition): Tool['inputSchema'] {
  const schema = JSON.parse(inputSchemaJson) as JsonObject;
  const { properties, required } = schema;
  const fillable = Object.entries(isJsonObject(properties) ? properties : {})
    .filter(([, property]) => isJsonObject(property) && property.fillable === true)
    .map(([name]) => name);
  const names = Array.isArray(required) ? required : [];
  return {
    ...(withoutPlatformKeywords(schema) as JsonObject),
    ...(names.length > 0 && { required: names.filter((name) => !fillable.includes(String(name))) }),
    type: 'object',
  } as Tool['inputSchema'];
}

function withoutPlatformKeywords(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutPlatformKeywords);
  if (!isJsonObject(value)) return value;
  const isPlatformKeyword = (name: string, inner: JsonValue) =>
    (name === 'fillable' && typeof inner === 'boolean') ||
    (name === 'decimals' && typeof inner === 'number');
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) =>
      isPlatformKeyword(name, inner) ? [] : [[name, withoutPlatformKeywords(inner)]],
    ),
  );
}
