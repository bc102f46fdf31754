import { ConfigError } from '../config-error.ts';
import type { Variable } from './define-variable.ts';

/** An environment in the form of `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The fields of a typed object, each with its environment variable. */
export type EnvSpec = Readonly<Record<string, Variable<unknown>>>;

/** The typed object that a spec describes. */
export type EnvValues<S extends EnvSpec> = {
  readonly [K in keyof S]: S[K] extends Variable<infer T> ? T : never;
};

/** Names of all variables that this process has read, and of those that the CLI reads by itself. */
const known = new Set<string>(['WRIT_ADDRESS', 'WRIT_API_KEY', 'WRIT_CA_FILE']);

/**
 * Reads every variable of `spec` from `env` and returns a frozen object with the field names of
 * `spec`. Surrounding white space is trimmed; an empty variable counts as unset.
 * @throws ConfigError with one sentence for each missing or malformed variable: the expected format
 *   and how to set it, without secret values
 */
export function readEnv<S extends EnvSpec>(env: Environment, spec: S): EnvValues<S> {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [field, variable] of Object.entries(spec)) {
    declared?.push(variable);
    known.add(variable.name);
    const text = env[variable.name]?.trim();
    const reading = variable.read(text === '' ? undefined : text);
    if ('problem' in reading) problems.push(reading.problem);
    else values[field] = reading.value;
  }
  if (problems.length > 0) throw new ConfigError('The environment', problems);
  return Object.freeze(values) as EnvValues<S>;
}

/** The variables of the specs that are read while {@link declaredVariables} runs. */
let declared: Variable<unknown>[] | undefined;

/**
 * Returns the variables that `read` declares, for the configuration reference.
 *
 * @param read reads the variables with {@link readEnv}; an invalid environment is ignored
 */
export function declaredVariables(read: () => unknown): readonly Variable<unknown>[] {
  const variables: Variable<unknown>[] = [];
  declared = variables;
  try {
    read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
  } finally {
    declared = undefined;
  }
  return variables;
}

/**
 * Rejects variables that begin with `WRIT_` and differ from one that this process has read by underscores and at most
 * two letters: such a setting would otherwise be ignored, and the default would apply (SYS-3). Call it once everything
 * is read. Other unknown variables are permitted, because files may refer to them.
 * @throws ConfigError with one sentence for each, naming the variable that is meant
 */
export function rejectMisspelt(env: Environment): void {
  const problems = Object.entries(env).flatMap(([name, value]) => {
    if (!value || !name.startsWith(PREFIX) || known.has(name)) return [];
    const meant = [...known].find((one) => isNear(name, one));
    return meant === undefined ? [] : [`${name} is not a setting; did you mean ${meant}?`];
  });
  if (problems.length > 0) throw new ConfigError('The environment', problems);
}

const PREFIX = 'WRIT_';
const MAX_TYPOS = 2;

function isNear(name: string, other: string): boolean {
  const [a, b] = [name, other].map((each) => each.slice(PREFIX.length).replaceAll('_', ''));
  return other.startsWith(PREFIX) && distance(a ?? '', b ?? '') <= MAX_TYPOS;
}

/** The number of letters to insert, delete or replace (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (letter === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
