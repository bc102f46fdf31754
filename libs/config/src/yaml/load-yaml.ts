import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { ConfigError } from '../config-error.ts';
import { clearestErrors } from './clearest-errors.ts';
import { describeSchemaError } from './schema-error.ts';
import { type DataPath, readYaml, type YamlInput, type YamlSource } from './yaml-source.ts';

/** A JSON Schema 2020-12 as data. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A valid document with its warnings. */
export interface LoadedYaml<T> {
  readonly value: T;
  /** One sentence with the position for each zero that `x-zero` marks. */
  readonly warnings: readonly string[];
  /** `file:line:column` of the value at `path`, for checks that a schema cannot make. */
  locate(path: DataPath): string;
}

interface Zero {
  readonly path: DataPath;
  readonly meaning: string;
}

/** State that validator keywords write while one document is validated. */
interface ValidationContext {
  readonly zeros: Zero[];
}

const ajv = new Ajv2020({
  allErrors: true,
  verbose: true,
  strict: true,
  strictTypes: false,
  strictRequired: false,
  strictTuples: false,
  allowUnionTypes: true,
  passContext: true,
});
for (const keyword of ['x-expected', 'x-default', 'x-unit']) {
  ajv.addKeyword({ keyword, schemaType: 'string' });
}
ajv.addKeyword({
  keyword: 'x-zero',
  schemaType: 'string',
  errors: false,
  validate(this: ValidationContext, meaning: string, data: unknown, _parent, cxt) {
    if (isZero(data)) this.zeros.push({ path: pathOf(cxt?.instancePath ?? ''), meaning });
    return true;
  },
});

const compiled = new WeakMap<JsonSchema, ValidateFunction>();

/**
 * Reads a YAML document and validates it against a JSON Schema 2020-12, compiled once per schema object. Besides the
 * standard keywords, a schema accepts `x-expected: 'a duration such as 30s'`, which describes the expected value in
 * messages, and `x-zero: 'means none; leave it out for unlimited'`, which turns a 0 (also `"0"`, `"0.00"`, `"0s"`) into
 * a warning. `x-default` and `x-unit` are accepted and have no effect here. The keyword `format` is not supported: a
 * schema that contains it cannot be compiled. Defaults are not applied.
 * @throws ConfigError listing every problem as `file:line:column: message`: syntax errors, or
 *   otherwise missing keys, unknown keys and values of the wrong type
 */
export function loadYaml<T>(input: YamlInput, schema: JsonSchema): LoadedYaml<T> {
  const source = readYaml(input);
  const { errors, zeros } = validate(source.value, schema);
  if (errors.length > 0) throw new ConfigError(source.file, problemsOf(source, schema, errors));
  return {
    value: source.value as T,
    warnings: warningsOf(source, zeros),
    locate: (path) => source.locate(path),
  };
}

/**
 * Validates data that was not read from a document, against a schema as {@link loadYaml} does.
 * @param root the name of the data in messages about the root
 * @returns one sentence per problem, which names the path of the value; none when the data is valid
 */
export function schemaProblems(data: unknown, schema: JsonSchema, root: string): readonly string[] {
  const problems = clearestErrors(schema, validate(data, schema).errors).map(
    (error) => describeSchemaError(pathOf(error.instancePath), error, root).text,
  );
  return [...new Set(problems)];
}

function validate(data: unknown, schema: JsonSchema) {
  const check = compiled.get(schema) ?? ajv.compile(schema);
  compiled.set(schema, check);
  const context: ValidationContext = { zeros: [] };
  const isValid = check.call(context, data);
  return { errors: isValid ? [] : (check.errors ?? []), zeros: context.zeros };
}

function problemsOf(
  source: YamlSource,
  schema: JsonSchema,
  errors: readonly ErrorObject[],
): string[] {
  const problems = clearestErrors(schema, errors).map((error) => {
    const { path, at, text } = describeSchemaError(pathOf(error.instancePath), error);
    return `${source.locate(path, at)}: ${text}`;
  });
  return [...new Set(problems)];
}

function warningsOf(source: YamlSource, zeros: readonly Zero[]): string[] {
  // Several alternatives of a schema can visit the same value.
  const warnings = zeros.map(
    ({ path, meaning }) => `${source.locate(path)}: ${path.at(-1)} is 0, which ${meaning}.`,
  );
  return [...new Set(warnings)];
}

function isZero(data: unknown): boolean {
  return data === 0 || (typeof data === 'string' && /^0+(\.0+)?(ms|s|m|h|d)?$/.test(data));
}

function pathOf(instancePath: string): DataPath {
  return instancePath
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}
