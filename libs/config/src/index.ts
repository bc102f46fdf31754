export { ConfigError } from './config-error.ts';
export type { Reading, Variable, VariableOptions } from './env/define-variable.ts';
export { parseDuration } from './env/duration.ts';
export type { Environment, EnvSpec, EnvValues } from './env/env.ts';
export { readEnv } from './env/env.ts';
export { variable } from './env/variable.ts';
export type { JsonSchema, LoadedYaml } from './yaml/load-yaml.ts';
export { loadYaml } from './yaml/load-yaml.ts';
export type { DataPath, YamlInput } from './yaml/yaml-source.ts';
