/** What reading one variable gave. */
export type Reading<T> = { readonly value: T } | { readonly problem: string };

/** One environment variable and how to read it; made by the readers of `variable`. */
export interface Variable<T> {
  readonly name: string;
  /** @param text the trimmed text, undefined when unset */
  read(text: string | undefined): Reading<T>;
}

/** What may be said about any variable. */
export interface VariableOptions {
  /** What it is for, as the end of "It is …", such as `the port that clients call`. */
  readonly about?: string;
  /** Replaces the standard example in messages. */
  readonly example?: string;
  /** Never show its value in a message. */
  readonly secret?: boolean;
}

/** How the text of one kind is read. Answers undefined when the text is not of this kind. */
export interface Grammar<T> {
  readonly expected: string;
  readonly example: string;
  /** Text of this kind may hold a password or key, so it is never shown. */
  readonly hidden?: boolean;
  parse(text: string): T | undefined;
}

/** Every option that all kinds have, however the variable may be absent. */
export type AnyOptions<T> = VariableOptions & { readonly default?: T; readonly optional?: boolean };

/** The variable `name` of the kind that `grammar` reads; its messages say what is expected and how to set it. */
export function defineVariable<T>(
  name: string,
  options: AnyOptions<T>,
  grammar: Grammar<T>,
): Variable<T> {
  const set = `Set it as ${name}=${options.example ?? grammar.example}.`;
  const about = options.about === undefined ? '' : ` It is ${options.about}.`;
  return {
    name,
    read(text) {
      if (text === undefined) {
        if (options.default !== undefined || options.optional === true) {
          return { value: options.default as T };
        }
        return { problem: `${name} is not set.${about} ${set}` };
      }
      const value = grammar.parse(text);
      if (value !== undefined) return { value };
      const hidden = options.secret === true || grammar.hidden === true;
      const but = hidden ? ', and its value is not' : `, not ${JSON.stringify(text.slice(0, 60))}`;
      return { problem: `${name} must be ${grammar.expected}${but}.${about} ${set}` };
    },
  };
}
