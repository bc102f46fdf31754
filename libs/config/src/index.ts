export { ConfigError } from './config-error.ts';
export type { Reading, Variable, VariableOptions } from './define-variable.ts';
export { parseDuration } from './duration.ts';
export type { Environment, EnvSpec, EnvValues } from './env.ts';
export { readEnv } from './env.ts';
export type { JsonSchema, LoadedYaml } from './load-yaml.ts';
export { loadYaml } from './load-yaml.ts';
export { variable } from './variable.ts';
export type { DataPath, YamlInput } from './yaml-source.ts';
