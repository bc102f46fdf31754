import { RE2JS } from 're2js';
import { InvalidRequestError } from '../errors/errors.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';

/** Limits of an untrusted JSON Schema (BD-1). They restrict the time to compile it and to validate against it. */
export const SCHEMA_LIMITS = {
  /** UTF-8 bytes of the schema as JSON. */
  bytes: 65_536,
  /** Levels of nested values; a scalar counts as a level. */
  depth: 32,
  /** Subschemas, including `true` and `false`, that are compiled for all arguments together. */
  subschemas: 2_000,
  /** Subschemas in one function: Ajv nests the code of each in that of the one before, and V8 parses it recursively. */
  inOneFunction: 1_100,
  /** Subschemas times properties, for all arguments together, if the schema uses `unevaluated…` keywords. */
  evaluated: 50_000,
  /** Arguments of one tool. */
  arguments: 256,
  /**
   * Subschemas with every `$ref` expanded, for all arguments together. 20 subschemas that are `true` or `false`
   * count as one, and so do 4 references to enclosing subschemas, counted again in each subschema between.
   */
  expanded: 50_000,
  /** Subschemas that enclose each other, with every `$ref` expanded once. */
  enclosing: 256,
  /** Subschemas that may be applied to one value, with every `$ref` expanded. */
  checksPerValue: 1_000,
  /** Instructions of all patterns that may be applied to one value. */
  patternSteps: 1_000,
  /** Instructions of all patterns of the schema. */
  allPatternSteps: 20_000,
} as const;

/**
 * Compiles a pattern of a schema for an engine whose time is linear in the length of the text. Lookaround and
 * backreferences, which cannot be matched in linear time, are not supported.
 * @throws Error when the pattern is malformed or not supported
 * @see https://github.com/google/re2/wiki/Syntax
 */
export function compileLinearPattern(source: string): RE2JS {
  return RE2JS.compile(RE2JS.translateRegExp(source));
}

/**
 * Rejects a schema that is larger or deeper than {@link SCHEMA_LIMITS} allows. Call it before the schema is traversed.
 * @throws InvalidRequestError INVALID_ARGUMENT_CONTRACT
 */
export function assertSchemaSize(schema: JsonObject): void {
  if (depthOf(schema) > SCHEMA_LIMITS.depth) {
    throw unusable(`is nested deeper than ${SCHEMA_LIMITS.depth} levels`);
  }
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > SCHEMA_LIMITS.bytes) {
    throw unusable(`has ${bytes} bytes; the limit is ${SCHEMA_LIMITS.bytes}`);
  }
}

function depthOf(root: JsonValue): number {
  let level: readonly JsonValue[] = [root];
  let depth = 0;
  while (level.length > 0 && depth <= SCHEMA_LIMITS.depth) {
    level = level.flatMap((value) =>
      typeof value === 'object' && value !== null ? Object.values<JsonValue>(value) : [],
    );
    depth += 1;
  }
  return depth;
}

/** Returns the error for a JSON Schema of arguments or results. */
export function unusable(rule: string): InvalidRequestError {
  const message = `The JSON Schema is unusable: it ${rule}.`;
  return new InvalidRequestError('INVALID_ARGUMENT_CONTRACT', message, { field: 'schema' });
}
