import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { loadYaml } from '@writ/config';
import { type JsonObject, NotFoundError } from '@writ/kernel';
import { loadScripts, type Script } from '@writ/simulator';

const EXAMPLES = resolve(import.meta.dirname, '../../examples');

/** An example folder: agents, tools, policy, models, scripts and one job. */
export interface Example {
  readonly name: string;
  readonly description: string;
  /** Goal of the agent. */
  readonly goal: string;
  /** Manifest name of the started agent. */
  readonly agent: string;
  /** Default script of the simulated model. */
  readonly script: string;
  /** Runs that are started before the job, in order. */
  readonly before: readonly ExampleRun[];
  /** Scripted signals to waiting agents, in order. */
  readonly signals: readonly ExampleSignal[];
  readonly folder: string;
  readonly scripts: readonly Script[];
}

/** A run that an example starts before its job. */
export interface ExampleRun {
  readonly agent: string;
  readonly goal: string;
}

/** A scripted signal. */
export interface ExampleSignal {
  /** Name of the signal without the part after a colon: `human_reply`, `new_source_item`. */
  readonly name: string;
  readonly payload: JsonObject;
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
    before: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['agent', 'goal'],
        properties: { agent: { type: 'string' }, goal: { type: 'string', minLength: 1 } },
      },
    },
    signals: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'payload'],
        properties: { name: { type: 'string', minLength: 1 }, payload: { type: 'object' } },
      },
    },
  },
} as const;

/**
 * Loads an example by the name of its folder.
 *
 * @throws NotFoundError that lists the examples
 * @throws ConfigError when one of its files is invalid
 */
export function loadExample(name: string): Example {
  const folder = join(EXAMPLES, name);
  const file = join(folder, 'example.yaml');
  if (!existsSync(file)) {
    throw new NotFoundError(
      'UNKNOWN_EXAMPLE',
      `Example ${JSON.stringify(name)} does not exist. Available examples: ${exampleNames().join(', ')}.`,
      { field: '--example' },
    );
  }
  const { value } = loadYaml<Omit<Example, 'folder' | 'scripts'>>(file, SCHEMA);
  const { before = [], signals = [] } = value as Partial<Example>;
  return { ...value, before, signals, folder, scripts: loadScripts(join(folder, 'scripts')) };
}

/**
 * The script with the given name.
 *
 * @throws NotFoundError that lists the scripts
 */
export function scriptOf(example: Example, name: string): Script {
  const script = example.scripts.find((one) => one.name === name);
  if (script !== undefined) return script;
  const known = example.scripts.map((one) => one.name).join(', ');
  throw new NotFoundError(
    'UNKNOWN_SCRIPT',
    `Script ${JSON.stringify(name)} does not exist. Scripts of ${example.name}: ${known}.`,
    { field: '--script' },
  );
}

function exampleNames(): string[] {
  return readdirSync(EXAMPLES).filter((name) => existsSync(join(EXAMPLES, name, 'example.yaml')));
}
