/** Result of reading one variable. */
export type Reading<T> = { readonly value: T } | { readonly problem: string };

/** One environment variable and its parser; created by the functions of `variable`. */
export interface Variable<T> {
  readonly name: string;
  /** What it accepts, its purpose and its default, for the configuration reference. */
  readonly reference: VariableReference;
  /** @param text the trimmed text, undefined when unset */
  read(text: string | undefined): Reading<T>;
}

/** A variable as the configuration reference lists it. */
export interface VariableReference {
  /** The expected format, such as `a port from 0 (any free port) to 65535`. */
  readonly expected: string;
  /** The purpose of the variable; empty when it declares none. */
  readonly about: string;
  /** Undefined without a default. */
  readonly default: unknown;
  readonly isRequired: boolean;
}

/** Options that every variable accepts. */
export interface VariableOptions {
  /** The purpose of the variable, as the end of "It is …", such as `the port that clients call`. */
  readonly about?: string;
  /** Replaces the default example in messages. */
  readonly example?: string;
  /** Excludes the value from messages. */
  readonly secret?: boolean;
}

/** Parser of one type of variable. `parse` returns undefined when the text does not match. */
export interface Grammar<T> {
  readonly expected: string;
  readonly example: string;
  /** The text may contain a password or key and is excluded from messages. */
  readonly hidden?: boolean;
  parse(text: string): T | undefined;
}

/** The options of all types, required or optional. */
export type AnyOptions<T> = VariableOptions & { readonly default?: T; readonly optional?: boolean };

/**
 * Defines the variable `name`, parsed by `grammar`. Its messages state the expected format and how
 * to set it.
 */
export function defineVariable<T>(
  name: string,
  options: AnyOptions<T>,
  grammar: Grammar<T>,
): Variable<T> {
  const set = `Set it as ${name}=${options.example ?? grammar.example}.`;
  const about = options.about === undefined ? '' : ` It is ${options.about}.`;
  const isRequired = options.default === undefined && options.optional !== true;
  return {
    name,
    reference: {
      expected: grammar.expected,
      about: options.about ?? '',
      default: options.default,
      isRequired,
    },
    read(text) {
      if (text === undefined) {
        if (!isRequired) return { value: options.default as T };
        return { problem: `${name} is not set.${about} ${set}` };
      }
      const value = grammar.parse(text);
      if (value !== undefined) return { value };
      const hidden = options.secret === true || grammar.hidden === true;
      const actual = hidden
        ? '; the current value is not'
        : `, not ${JSON.stringify(text.slice(0, 60))}`;
      return { problem: `${name} must be ${grammar.expected}${actual}.${about} ${set}` };
    },
  };
}
