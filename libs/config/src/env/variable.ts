import { isWritError } from '@writ/kernel';
import {
  type AnyOptions,
  defineVariable,
  type Variable,
  type VariableOptions,
} from './define-variable.ts';
import { parseDuration } from './duration.ts';

type WithDefault<T> = { readonly default: T };
type Optional = { readonly optional: true };

/** Defines a variable of one type: required unless it has a default or is optional. */
interface Kind<T, Extra> {
  <D extends T>(name: string, options: VariableOptions & Extra & WithDefault<D>): Variable<T>;
  (name: string, options: VariableOptions & Extra & Optional): Variable<T | undefined>;
  (name: string, options?: VariableOptions & Extra): Variable<T>;
}

interface Range {
  /** Smallest value allowed. */
  readonly min?: number;
  /** Largest value allowed. */
  readonly max?: number;
}

function inRange(value: number, { min, max }: Range): number | undefined {
  const fits = value >= (min ?? -Infinity) && value <= (max ?? Infinity);
  return Number.isFinite(value) && fits ? value : undefined;
}

function rangeText({ min, max }: Range): string {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}`;
  if (min !== undefined) return ` of at least ${min}`;
  return max === undefined ? '' : ` of at most ${max}`;
}

const BOOLEANS: Readonly<Record<string, boolean>> = {
  true: true,
  yes: true,
  on: true,
  1: true,
  false: false,
  no: false,
  off: false,
  0: false,
};

const string = ((name: string, options: AnyOptions<string> & { pattern?: RegExp } = {}) =>
  defineVariable(name, options, {
    expected:
      options.pattern === undefined ? 'a string' : `a string that matches ${options.pattern}`,
    example: 'text',
    hidden: true,
    parse: (text) => (options.pattern?.test(text) === false ? undefined : text),
  })) as Kind<string, { readonly pattern?: RegExp }>;

const number = ((name: string, options: AnyOptions<number> & Range = {}) =>
  defineVariable(name, options, {
    expected: `a number${rangeText(options)}`,
    example: String(options.min ?? 1),
    parse: (text) => (/^-?\d+(\.\d+)?$/.test(text) ? inRange(Number(text), options) : undefined),
  })) as Kind<number, Range>;

const integer = ((name: string, options: AnyOptions<number> & Range = {}) =>
  defineVariable(name, options, {
    expected: `a whole number${rangeText(options)}`,
    example: String(options.min ?? 1),
    parse: (text) => {
      const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
      return Number.isSafeInteger(value) ? inRange(value, options) : undefined;
    },
  })) as Kind<number, Range>;

const port = ((name: string, options: AnyOptions<number> = {}) =>
  defineVariable(name, options, {
    expected: 'a port from 0 (any free port) to 65535',
    example: '8080',
    parse: (text) =>
      /^\d{1,5}$/.test(text) ? inRange(Number(text), { min: 0, max: 65_535 }) : undefined,
  })) as Kind<number, unknown>;

const boolean = ((name: string, options: AnyOptions<boolean> = {}) =>
  defineVariable(name, options, {
    expected: 'true or false',
    example: 'true',
    parse: (text) => BOOLEANS[text.toLowerCase()],
  })) as Kind<boolean, unknown>;

const url = ((
  name: string,
  options: AnyOptions<string> & { protocols?: readonly string[] } = {},
) => {
  const protocols = options.protocols ?? ['http', 'https'];
  return defineVariable(name, options, {
    expected: `an absolute URL with ${protocols.join(' or ')}`,
    example: `${protocols[0] ?? 'http'}://127.0.0.1:4317`,
    hidden: true,
    parse: (text) => {
      const parsed = URL.parse(text);
      const fits = parsed !== null && protocols.includes(parsed.protocol.slice(0, -1));
      return fits ? text : undefined;
    },
  });
}) as Kind<string, { readonly protocols?: readonly string[] }>;

const duration = ((name: string, options: AnyOptions<number> & Range = {}) =>
  defineVariable(name, options, {
    expected: `a duration with a unit (ms, s, m, h or d)${milliseconds(options)}`,
    example: inRange(30_000, options) === undefined ? `${options.max ?? options.min}ms` : '30s',
    parse: (text) => {
      try {
        return inRange(parseDuration(text, name), options);
      } catch (error) {
        if (isWritError(error)) return undefined;
        throw error;
      }
    },
  })) as Kind<number, Range>;

function milliseconds(range: Range): string {
  const text = rangeText(range);
  return text === '' ? '' : `${text} ms`;
}

const list = ((name: string, options: AnyOptions<readonly string[]> & { item?: RegExp } = {}) =>
  defineVariable(name, options, {
    expected: `a list separated by commas${options.item === undefined ? '' : ` whose items match ${options.item}`}`,
    example: 'one,two',
    hidden: true,
    parse: (text) => {
      const items = text.split(',').map((item) => item.trim());
      const fits = items.every((item) => item !== '' && options.item?.test(item) !== false);
      return fits ? Object.freeze(items) : undefined;
    },
  })) as Kind<readonly string[], { readonly item?: RegExp }>;

interface EnumKind {
  <const V extends string>(
    name: string,
    values: readonly V[],
    options: VariableOptions & WithDefault<NoInfer<V>>,
  ): Variable<V>;
  <const V extends string>(
    name: string,
    values: readonly V[],
    options: VariableOptions & Optional,
  ): Variable<V | undefined>;
  <const V extends string>(
    name: string,
    values: readonly V[],
    options?: VariableOptions,
  ): Variable<V>;
}

const oneOf = ((name: string, values: readonly string[], options: AnyOptions<string> = {}) =>
  defineVariable(name, options, {
    expected: `one of ${values.join(', ')}`,
    example: values[0] ?? '',
    parse: (text) => (values.includes(text) ? text : undefined),
  })) as EnumKind;

/**
 * Definitions of single variables for {@link readEnv}. Each takes the name of the variable and
 * options: a variable with neither `default` nor `optional: true` is required. `duration` returns
 * milliseconds, `url` the text as written, `list` the items between commas.
 */
export const variable = {
  string,
  number,
  integer,
  port,
  boolean,
  url,
  duration,
  list,
  enum: oneOf,
};
