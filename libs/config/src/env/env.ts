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

/**
 * Names of all variables that this process has read, and of the variables that the CLI reads without {@link readEnv}.
 */
export const knownVariables = new Set<string>(['WRIT_ADDRESS', 'WRIT_API_KEY', 'WRIT_CA_FILE']);

/**
 * Reads every variable of `spec` from `env` and returns a frozen object with the field names of
 * `spec`. Surrounding white space is trimmed; an empty variable is treated as unset.
 * @throws ConfigError with one sentence for each missing or malformed variable: the expected format
 *   and how to set it, without secret values
 */
export function readEnv<S extends EnvSpec>(env: Environment, spec: S): EnvValues<S> {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [field, variable] of Object.entries(spec)) {
    declared?.push(variable);
    knownVariables.add(variable.name);
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
