import { isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';

/** Keywords with subschemas: those of `OF_VALUE` apply to the value itself, those of `OF_MEMBERS` to its members. */
export const OF_VALUE = {
  one: ['not', 'if', 'then', 'else'],
  list: ['allOf', 'anyOf', 'oneOf'],
  map: ['dependentSchemas', 'dependencies'],
};
export const OF_MEMBERS = {
  one: [
    'items',
    'contains',
    'additionalProperties',
    'propertyNames',
    'unevaluatedItems',
    'unevaluatedProperties',
  ],
  list: ['prefixItems'],
  map: ['patternProperties'],
};

/**
 * Keywords that name a target of references, that refer to a target that depends on the validated value, or that are an
 * extension of Ajv (`$async`: an invalid value rejects a promise).
 */
export const UNSUPPORTED = [
  '$async',
  '$id',
  '$anchor',
  '$dynamicAnchor',
  '$dynamicRef',
  '$recursiveAnchor',
  '$recursiveRef',
];

/** Keywords whose value is a subschema or a list of subschemas. */
const APPLICATORS = new Set([OF_VALUE, OF_MEMBERS].flatMap(({ one, list }) => [...one, ...list]));
/**
 * Keywords whose value Ajv searches as a map of subschemas: its keys are names, not keywords. Ajv searches the value of
 * `dependentSchemas` like that of an unknown keyword.
 */
const MAPS = new Set(['$defs', 'definitions', 'properties', 'patternProperties', 'dependencies']);
/** Some of the keywords with which Ajv does not treat a schema with a `$ref` as an alias of the target. */
const RULES = ['type', 'properties', ...APPLICATORS, ...OF_VALUE.map, ...OF_MEMBERS.map];
/** Keywords whose value is data, which Ajv does not search for names. */
const DATA = new Set(['const', 'default', 'enum']);

/** Returns whether a schema, or data in it, contains a keyword whose result depends on the evaluated members. */
export function usesUnevaluated(schema: JsonObject): boolean {
  return /"unevaluated(?:Properties|Items)":/.test(JSON.stringify(schema));
}

/** Returns the number of `dependentRequired` and `dependencies` of a schema, which Ajv nests like subschemas. */
export function dependenciesOf({ dependentRequired, dependencies }: JsonObject): number {
  return [dependentRequired, dependencies].flatMap((map) => Object.keys(mapOf(map))).length;
}

/** Returns the number of subschemas of a schema that are `true` or `false`. */
export function literalsOf(schema: JsonObject): number {
  const parts = [
    ...subschemas(schema, OF_VALUE),
    ...subschemas(schema, OF_MEMBERS),
    ...Object.values(mapOf(schema.properties)),
  ];
  return parts.filter((part) => !isJsonObject(part)).length;
}

export function isAlias(schema: JsonObject): boolean {
  return !RULES.some((keyword) => Object.hasOwn(schema, keyword));
}

export function subschemas(schema: JsonObject, { one, list, map }: typeof OF_VALUE): JsonValue[] {
  return [
    ...one.flatMap((keyword) => schema[keyword] ?? []),
    ...list.flatMap((keyword) => listOf(schema[keyword])),
    ...map.flatMap((keyword) => Object.values(mapOf(schema[keyword]))),
  ];
}

/**
 * Finds an unsupported keyword with a string in a subschema, a map of subschemas, or the value of an unknown keyword,
 * in all of which Ajv finds names.
 */
export function unsupportedIn(
  value: JsonValue,
  where: 'schema' | 'map' | 'unknown',
): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const found = Array.isArray(value)
    ? value.map((item) => unsupportedIn(item, where))
    : Object.entries(value).map(([key, part]) => {
        if (typeof part === 'string') return UNSUPPORTED.find((keyword) => keyword === key);
        if (where === 'map') return unsupportedIn(part, 'schema');
        if (where === 'unknown') return unsupportedIn(part, 'unknown');
        if (DATA.has(key) || (key === 'examples' && Array.isArray(part))) return undefined;
        if (MAPS.has(key)) return unsupportedIn(part, 'map');
        return unsupportedIn(part, APPLICATORS.has(key) ? 'schema' : 'unknown');
      });
  return found.find((keyword) => keyword !== undefined);
}

/**
 * Returns the target of a reference, or undefined unless Ajv certainly resolves it to the same target: Ajv ignores `#`
 * and `#/` at the end, replaces lone surrogates, finds inherited members, and resolves references below an `$id`
 * against it.
 */
export function resolve(root: JsonObject, reference: string): JsonValue | undefined {
  if (reference === '#') return root;
  if (!/^#\/[^#]+$/.test(reference) || !reference.isWellFormed()) return undefined;
  let found: JsonValue | undefined = root;
  for (const part of reference.slice(2).split('/')) {
    const key = decodePointer(part);
    if (key === undefined || typeof found !== 'object' || found === null) return undefined;
    if ('$id' in found && typeof found.$id === 'string') return undefined;
    found = Object.hasOwn(found, key)
      ? (found as Readonly<Record<string, JsonValue>>)[key]
      : undefined;
  }
  return found;
}

/** Decodes one part of a JSON Pointer in a URI fragment (RFC 6901, section 6). */
function decodePointer(part: string): string | undefined {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return undefined;
  }
}

export function mapOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
