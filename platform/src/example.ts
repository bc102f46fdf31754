import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { loadYaml } from '@writ/config';
import { NotFoundError } from '@writ/kernel';
import { loadScripts, type Script } from '@writ/testing/simulator';

const EXAMPLES = resolve(import.meta.dirname, '../../examples');

/** A folder of data that the platform can run: agents, tools, policy, models, scripts and one job. */
export interface Example {
  readonly name: string;
  readonly description: string;
  /** What the agent is asked to do. */
  readonly goal: string;
  /** Manifest name of the agent that is started. */
  readonly agent: string;
  /** Script that the simulated model follows when none is asked for. */
  readonly script: string;
  readonly folder: string;
  readonly scripts: readonly Script[];
}

const SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'description', 'goal', 'agent', 'script'],
  properties: {
    name: { type: 'string' },
    description: { type: 'string' },
    goal: { type: 'string', minLength: 1 },
    agent: { type: 'string' },
    script: { type: 'string' },
  },
} as const;

/**
 * Loads an example by the name of its folder.
 *
 * @throws NotFoundError that says which examples exist
 * @throws ConfigError when one of its files is not what it should be
 */
export function loadExample(name: string): Example {
  const folder = join(EXAMPLES, name);
  const file = join(folder, 'example.yaml');
  if (!existsSync(file)) {
    throw new NotFoundError(
      'UNKNOWN_EXAMPLE',
      `There is no example ${JSON.stringify(name)}; there is ${exampleNames().join(', ')}.`,
      { field: '--example' },
    );
  }
  const { value } = loadYaml<Omit<Example, 'folder' | 'scripts'>>(file, SCHEMA);
  return { ...value, folder, scripts: loadScripts(join(folder, 'scripts')) };
}

/**
 * The script of that name.
 *
 * @throws NotFoundError that says which scripts exist
 */
export function scriptOf(example: Example, name: string): Script {
  const script = example.scripts.find((one) => one.name === name);
  if (script !== undefined) return script;
  const known = example.scripts.map((one) => one.name).join(', ');
  throw new NotFoundError(
    'UNKNOWN_SCRIPT',
    `${example.name} has no script ${JSON.stringify(name)}; there is ${known}.`,
    { field: '--script' },
  );
}

function exampleNames(): string[] {
  return readdirSync(EXAMPLES).filter((name) => existsSync(join(EXAMPLES, name, 'example.yaml')));
}
