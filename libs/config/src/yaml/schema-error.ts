import type { ErrorObject } from 'ajv/dist/2020.js';
import type { DataPath } from './yaml-source.ts';

/** Message and position of one schema error. */
export interface SchemaProblem {
  readonly path: DataPath;
  /** Whether the position is that of the key or of the value at `path`. */
  readonly at: 'key' | 'value';
  readonly text: string;
}

/**
 * Formats one validator error at `path`: the expected and the actual value.
 * @param root the name of the empty path in messages
 */
export function describeSchemaError(
  path: DataPath,
  error: ErrorObject,
  root = 'the document',
): SchemaProblem {
  const name = path.length === 0 ? root : path.join('.');
  const params = error.params as Readonly<Record<string, unknown>>;
  const value = (text: string): SchemaProblem => ({ path, at: 'value', text: `${text}.` });
  const key = (name: unknown, text: string): SchemaProblem => ({
    path: [...path, String(name)],
    at: 'key',
    text: `${text}.`,
  });
  const expected = error.parentSchema?.['x-expected'];
  switch (error.keyword) {
    case 'required':
      return { path, at: 'key', text: `${name} needs ${quote(params.missingProperty)}.` };
    case 'dependentRequired':
      return value(
        `${name} needs ${quote(params.missingProperty)} beside ${quote(params.property)}`,
      );
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const unknown = params.additionalProperty ?? params.unevaluatedProperty;
      return key(unknown, `unknown key ${quote(unknown)}${knownKeys(error)}`);
    }
    case 'propertyNames':
      return key(
        params.propertyName,
        `${quote(params.propertyName)} is not a valid name here${nameRule(error)}`,
      );
    case 'enum': {
      const allowed = (params.allowedValues as unknown[]).map(quote).join(', ');
      return value(`${name} must be one of ${allowed}, not ${show(error.data)}`);
    }
    case 'const':
      return value(`${name} must be ${quote(params.allowedValue)}, not ${show(error.data)}`);
    case 'type': {
      const types = [params.type].flat().map((type) => TYPE_WORDS[String(type)] ?? String(type));
      const words = typeof expected === 'string' ? expected : types.join(' or ');
      return value(`${name} must be ${words}, not ${show(error.data)}`);
    }
    case 'anyOf':
    case 'oneOf': {
      const several = Array.isArray(params.passingSchemas);
      const forms = typeof expected === 'string' ? expected : formsOf(error);
      return value(
        several
          ? `${name} matches more than one alternative; remove the keys that do not apply`
          : `${name} must be ${forms}, not ${show(error.data)}`,
      );
    }
    case 'false schema':
      return { path, at: 'key', text: `${name} is not allowed here.` };
    default: {
      const words = typeof expected === 'string' ? `must be ${expected}` : error.message;
      return value(`${name} ${words}, not ${show(error.data)}`);
    }
  }
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  object: 'a map',
  array: 'a list',
  null: 'empty',
};

function formsOf(error: ErrorObject): string {
  const branches = (error.schema as readonly unknown[]).map((branch) => {
    const { title, type, required } = (branch ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof title === 'string') return title;
    if (Array.isArray(required)) return `a map with ${required.map(quote).join(' and ')}`;
    return typeof type === 'string' ? (TYPE_WORDS[type] ?? type) : undefined;
  });
  const named = branches.filter((branch) => branch !== undefined);
  return named.length === branches.length
    ? `one of: ${named.join('; ')}`
    : `one of ${branches.length} alternatives`;
}

function knownKeys(error: ErrorObject): string {
  const properties = error.parentSchema?.properties;
  if (typeof properties !== 'object' || properties === null) return '';
  const keys = Object.keys(properties);
  return keys.length === 0 ? '' : `; known keys: ${keys.join(', ')}`;
}

function nameRule(error: ErrorObject): string {
  const { 'x-expected': expected, pattern } = error.schema as Readonly<Record<string, unknown>>;
  if (typeof expected === 'string') return `; names must be ${expected}`;
  return typeof pattern === 'string' ? `; names must match ${pattern}` : '';
}

function quote(value: unknown): string {
  return typeof value === 'string' ? `"${value}"` : (JSON.stringify(value) ?? String(value));
}

/** Returns a short text for a scalar and only the type for anything else, which may be long. */
function show(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'a map';
  if (value === null || value === undefined) return 'empty';
  const text = quote(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
