/** Takes the examples of the configuration reference from files that set every key. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';

/** A JSON Schema with the keywords that the reference shows. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly { readonly if?: Schema; readonly then?: Schema }[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly 'x-default'?: string;
  readonly 'x-unit'?: string;
  readonly 'x-expected'?: string;
}

/**
 * Folder with one reference file per kind of configuration file. Each reference file sets every key; the examples of
 * the reference page and of the schemas are taken from it.
 */
export const REFERENCE_FILES = 'docs/reference/configuration';

const ROOT = resolve(import.meta.dirname, '..');

/** Returns the schema of a configuration file with an example for each leaf key. */
export function withExamples(name: string, schema: Schema): Schema {
  const file = readFileSync(join(ROOT, REFERENCE_FILES, `${name}.yaml`), 'utf8');
  return illustrate(schema, [parse(file)]);
}

/** @param values the values in the reference file that the schema describes */
function illustrate(schema: Schema, values: readonly unknown[]): Schema {
  const { properties = {}, items, additionalProperties: each, oneOf, allOf } = schema;
  const lists = values.flatMap((value) => (Array.isArray(value) ? value : []));
  const maps = values.filter(isMap);
  const isGroup =
    schema.properties !== undefined ||
    oneOf !== undefined ||
    [items, each].some((below) => typeof below === 'object' && hasKeys(below));
  return {
    ...schema,
    ...(!isGroup && values.length > 0 && { examples: values.slice(0, 1) }),
    ...(schema.properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([key, below]) => [
          key,
          illustrate(
            below,
            maps.flatMap((map) => (key in map ? [map[key]] : [])),
          ),
        ]),
      ),
    }),
    ...(items && hasKeys(items) && { items: illustrate(items, lists) }),
    ...(typeof each === 'object' &&
      hasKeys(each) && { additionalProperties: illustrate(each, maps.flatMap(Object.values)) }),
    ...(oneOf && {
      oneOf: oneOf.map((one) =>
        illustrate(
          one,
          values.filter((value) => isOfKind(value, one)),
        ),
      ),
    }),
    ...(allOf && { allOf: allOf.map((rule) => illustrateRule(rule, maps)) }),
  };
}

type Rule = NonNullable<Schema['allOf']>[number];

function illustrateRule(rule: Rule, maps: readonly Readonly<Record<string, unknown>>[]): Rule {
  const [[field = '', wanted] = []] = Object.entries(rule.if?.properties ?? {});
  if (rule.then === undefined) return rule;
  const concerned = maps.filter((map) => map[field] === wanted?.const);
  return Object.fromEntries([...Object.entries(rule), ['then', illustrate(rule.then, concerned)]]);
}

function hasKeys(schema: Schema): boolean {
  return (
    schema.properties !== undefined ||
    schema.oneOf !== undefined ||
    schema.items?.properties !== undefined
  );
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value has all required keys of an alternative, its constants, and no other keys. */
function isOfKind(value: unknown, { properties = {}, required = [] }: Schema): boolean {
  if (!isMap(value)) return false;
  const isConstant = ([key, { const: wanted }]: [string, Schema]) =>
    wanted === undefined || value[key] === wanted;
  return (
    required.every((key) => key in value) &&
    Object.keys(value).every((key) => key in properties) &&
    Object.entries(properties).every(isConstant)
  );
}
