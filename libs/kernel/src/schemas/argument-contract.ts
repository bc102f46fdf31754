import { Ajv2020 } from 'ajv/dist/2020.js';
import { fitsDecimals, MAX_DECIMALS } from '../budgets/decimals.ts';
import { InvalidRequestError } from '../errors/errors.ts';
import { canonicalJson } from '../json/canonical-json.ts';
import { canonicalDigest } from '../json/digests.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { ByteCache } from '../memory/byte-cache.ts';
import { usesUnevaluated } from './schema-keywords.ts';
import {
  assertSchemaSize,
  compileLinearPattern,
  SCHEMA_LIMITS,
  unusable,
} from './schema-limits.ts';
import { assertSchemaWork } from './schema-work.ts';

/** One compiled argument of a contract. */
export interface ArgumentSpec {
  readonly name: string;
  readonly required: boolean;
  /** May be missing in the proposal even if it is required (TG-3). */
  readonly fillable: boolean;
  /** Largest number of decimal places of a number, such as 2 for an amount of money; absent = any. */
  readonly decimals?: number | undefined;
  /** Whether a trimmed value matches; undefined for an invalid spec (`unknown_spec`). */
  readonly accepts: ((value: JsonValue) => boolean) | undefined;
}

/** The compiled JSON Schema of a tool's arguments (TG-3). */
export interface ArgumentContract {
  /** The schema, frozen. */
  readonly schema: JsonObject;
  /** In the order of the schema. */
  readonly specs: readonly ArgumentSpec[];
  /** Whether the schema allows an argument that `properties` does not list. */
  readonly admits: (name: string) => boolean;
  /** Validates rules over all arguments, such as dependentRequired and oneOf. */
  readonly acceptsAll: (args: JsonObject) => boolean;
  /** Names of the arguments with an invalid spec; a registry rejects such a tool. */
  readonly unreadable: readonly string[];
}

/** Why a schema is invalid. An error is not cached, because its stack can hold what was measured. */
type Rejection = Pick<InvalidRequestError, 'message' | 'metadata'>;

/** Cache of contracts, and of the rejections of invalid schemas, whose measurement also takes time. */
const cache = new ByteCache<ArgumentContract | { readonly rejection: Rejection }>({
  name: 'argument_contracts',
  maxBytes: 64_000_000,
});
/** A compiled validator takes many times the memory of its schema. */
const BYTES_PER_SCHEMA_BYTE = 20;
const REJECTION_BYTES = 500;

/**
 * Returns the validator of JSON Schemas of this process. It is created on first use, because creating it is slow: Ajv
 * compiles the JSON Schema meta-schema. It stores no schema that it validates.
 */
function metaSchema(): Ajv2020 {
  createdMetaSchema ??= new Ajv2020({ strict: false, validateFormats: false, logger: false });
  return createdMetaSchema;
}

let createdMetaSchema: Ajv2020 | undefined;

/**
 * Creates a JSON Schema compiler that matches patterns in linear time. Ajv stores everything that it has compiled, so
 * each schema needs a compiler of its own; without the meta-schema, creating one takes a fraction of a millisecond.
 * Definitions are not inlined, because they would be compiled once for each reference.
 * @param schema what is compiled. Only with `unevaluatedProperties` or `unevaluatedItems` is code generated that records
 *   the evaluated members: Ajv emits one statement for each property of each branch and reference
 */
function createCompiler(schema: JsonObject): Ajv2020 {
  const ajv = new Ajv2020({
    strict: false,
    meta: false,
    validateSchema: false,
    validateFormats: false,
    inlineRefs: false,
    logger: false,
    code: { regExp: Object.assign(compileLinearPattern, { code: 'compileLinearPattern' }) },
  });
  // The constructor ignores this option.
  ajv.opts.unevaluated = usesUnevaluated(schema);
  ajv.addKeyword({ keyword: 'fillable', schemaType: 'boolean' });
  ajv.addKeyword({
    keyword: 'decimals',
    type: 'number',
    compile: (decimals: unknown) => {
      if (!isDecimals(decimals)) throw badContract('decimals', DECIMALS_RULE);
      return (value: number) => fitsDecimals(value, decimals);
    },
  });
  // Ajv's own implementation of this keyword compares all pairs of items.
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (unique: boolean, items: readonly JsonValue[]) =>
      !unique || new Set(items.map(canonicalJson)).size === items.length,
  });
  return ajv;
}

/** Keywords that name a document or dialect, or that are validated per argument. */
const NOT_IN_WHOLE = new Set(['$schema', '$id', 'required', 'additionalProperties', 'properties']);

/**
 * Compiles the JSON Schema (2020-12, type object) of a tool's arguments; results and errors are cached.
 * Arguments not in `properties` are rejected unless the schema allows them. Two keywords are added to JSON Schema: `fillable`, and
 * `decimals`, the precision of a number.
 * @throws InvalidRequestError INVALID_ARGUMENT_CONTRACT when the schema is not a valid contract, NOT_SERIALIZABLE when
 *   it contains a lone surrogate
 */
export function compileContract(schema: JsonObject): ArgumentContract {
  assertSchemaSize(schema);
  const digest = canonicalDigest(schema);
  const known = cache.get(digest);
  if (known !== undefined && 'rejection' in known) {
    const { message, metadata } = known.rejection;
    throw new InvalidRequestError('INVALID_ARGUMENT_CONTRACT', message, metadata);
  }
  if (known !== undefined) return known;
  try {
    const contract = compile(deepFreeze(structuredClone(schema)));
    cache.set(digest, contract, BYTES_PER_SCHEMA_BYTE * JSON.stringify(schema).length);
    return contract;
  } catch (error) {
    if (error instanceof InvalidRequestError && error.reason === 'INVALID_ARGUMENT_CONTRACT') {
      const { message, metadata } = error;
      const bytes = REJECTION_BYTES + 2 * (message.length + JSON.stringify(metadata).length);
      cache.set(digest, { rejection: { message, metadata } }, bytes);
    }
    throw error;
  }
}

/**
 * Compiles a JSON Schema (2020-12) from an untrusted source that is not an argument contract, such as the schema of a
 * result.
 * @returns a function that returns whether a value is valid
 * @throws InvalidRequestError INVALID_ARGUMENT_CONTRACT when it exceeds {@link SCHEMA_LIMITS} or is not a schema
 */
export function compileSchema(schema: JsonObject): (value: JsonValue) => boolean {
  assertSchemaSize(schema);
  const { $schema, $id, ...rules } = schema;
  assertSchemaWork([rules]);
  const accepts = tryCompile(rules, createCompiler(rules));
  if (accepts === undefined) throw unusable('is not valid JSON Schema 2020-12');
  return accepts;
}

function compile(schema: JsonObject): ArgumentContract {
  if (schema.type !== 'object') throw badContract('type', 'must be "object"');
  const properties = schema.properties ?? {};
  if (!isJsonObject(properties)) throw badContract('properties', 'must be an object');
  const required = schema.required ?? [];
  if (!isNameList(required)) throw badContract('required', 'must be a list of argument names');
  const undeclared = required.find((name) => !Object.hasOwn(properties, name));
  if (undeclared !== undefined) {
    throw badContract('required', `names ${undeclared}, which is not in properties`);
  }
  const admits = compileAdmission(schema);
  assertBounded(schema, Object.keys(properties));
  const ajv = createCompiler(schema);
  const specs = Object.entries(properties).map(([name, spec]) => ({
    name,
    required: required.includes(name),
    fillable: readFillable(name, spec),
    decimals: readDecimals(name, spec),
    accepts: tryCompile(argumentSchema(schema, spec), ajv),
  }));
  return Object.freeze({
    schema,
    specs,
    admits,
    acceptsAll: compileWhole(schema, Object.keys(properties), ajv),
    unreadable: specs.filter((spec) => spec.accepts === undefined).map((spec) => spec.name),
  });
}

/**
 * Checks the limits for all arguments together, because together they can exceed a limit that no single argument
 * exceeds.
 */
function assertBounded(schema: JsonObject, names: readonly string[]): void {
  const { arguments: most } = SCHEMA_LIMITS;
  if (names.length > most) {
    throw badContract('properties', `has ${names.length} arguments; the limit is ${most}`);
  }
  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  const parts = Object.values(properties).map((spec) => argumentSchema(schema, spec));
  assertSchemaWork([wholeSchema(schema, names), ...parts]);
}

/** The schema of one argument together with the definitions of the schema, so that its `$ref`s resolve. */
function argumentSchema(schema: JsonObject, spec: JsonValue): JsonObject {
  const { $defs = {}, definitions = {} } = schema;
  return { $defs, definitions, allOf: [spec] };
}

function compileAdmission(schema: JsonObject): (name: string) => boolean {
  const extra = schema.additionalProperties ?? false;
  const patterns = schema.patternProperties ?? {};
  if (!isJsonObject(patterns)) throw badContract('patternProperties', 'must be an object');
  const expressions = Object.keys(patterns).map((source) => {
    try {
      return compileLinearPattern(source);
    } catch (cause) {
      throw badContract('patternProperties', 'has a malformed or unsupported pattern', { cause });
    }
  });
  return (name) => extra !== false || expressions.some((expression) => expression.test(name));
}

/** Returns the part of the schema with the rules that apply to all arguments together. */
function wholeSchema(schema: JsonObject, names: readonly string[]): JsonObject {
  const rest = Object.entries(schema).filter(([keyword]) => !NOT_IN_WHOLE.has(keyword));
  const { additionalProperties } = schema;
  return {
    ...Object.fromEntries(rest),
    properties: Object.fromEntries(names.map((name) => [name, true])),
    ...(additionalProperties === undefined ? {} : { additionalProperties }),
  };
}

function compileWhole(
  schema: JsonObject,
  names: readonly string[],
  ajv: Ajv2020,
): (args: JsonObject) => boolean {
  const accepts = tryCompile(wholeSchema(schema, names), ajv);
  if (accepts === undefined) throw badContract('schema', 'is not a valid JSON Schema');
  return accepts;
}

/** @param ajv a compiler that is not used for other schemas */
function tryCompile(schema: JsonObject, ajv: Ajv2020): ((value: JsonValue) => boolean) | undefined {
  try {
    if (metaSchema().validateSchema(schema) !== true) return undefined;
    const validate = ajv.compile(schema);
    // The engine parses the function at its first call, which fails if its code is nested too deeply.
    validate(null);
    return (value) => validate(value) === true;
  } catch {
    // An invalid spec is not an error here: it is reported as unknown_spec.
    return undefined;
  }
}

function readFillable(name: string, spec: JsonValue): boolean {
  const fillable = isJsonObject(spec) ? (spec.fillable ?? false) : false;
  if (typeof fillable === 'boolean') return fillable;
  throw badContract(`properties.${name}.fillable`, 'must be true or false');
}

function readDecimals(name: string, spec: JsonValue): number | undefined {
  const decimals = isJsonObject(spec) ? spec.decimals : undefined;
  if (decimals === undefined) return undefined;
  if (isDecimals(decimals)) return decimals;
  throw badContract(`properties.${name}.decimals`, DECIMALS_RULE);
}

const DECIMALS_RULE = `must be a whole number from 0 to ${MAX_DECIMALS}`;

function isDecimals(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_DECIMALS;
}

function isNameList(value: JsonValue): value is readonly string[] {
  return Array.isArray(value) && value.every((name) => typeof name === 'string');
}

function badContract(field: string, rule: string, options?: ErrorOptions): InvalidRequestError {
  const message = `The argument contract is unusable: ${field} ${rule}.`;
  return new InvalidRequestError('INVALID_ARGUMENT_CONTRACT', message, { field }, options);
}

function deepFreeze<T extends JsonValue>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) deepFreeze(member);
    Object.freeze(value);
  }
  return value;
}
