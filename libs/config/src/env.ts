import { ConfigError } from './config-error.ts';
import type { Variable } from './define-variable.ts';

/** An environment as `process.env` has it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A typed object's fields, each with the variable it comes from. */
export type EnvSpec = Readonly<Record<string, Variable<unknown>>>;

/** The typed object that a spec describes. */
export type EnvValues<S extends EnvSpec> = {
  readonly [K in keyof S]: S[K] extends Variable<infer T> ? T : never;
};

/**
 * Reads every variable of `spec` from `env`. An empty variable counts as unset, surrounding white
 * space is dropped. Returns a frozen object with the spec's field names.
 * @throws ConfigError with one sentence for each variable that is missing or malformed; it says
 *   what is expected and how to set it, and never repeats a secret
 */
export function readEnv<S extends EnvSpec>(env: Environment, spec: S): EnvValues<S> {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [field, variable] of Object.entries(spec)) {
    const text = env[variable.name]?.trim();
    const reading = variable.read(text === '' ? undefined : text);
    if ('problem' in reading) problems.push(reading.problem);
    else values[field] = reading.value;
  }
  if (problems.length > 0) throw new ConfigError('The environment', problems);
  return Object.freeze(values) as EnvValues<S>;
}
