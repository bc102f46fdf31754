import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { loadYaml } from '@writ/config';
import { type JsonObject, NotFoundError } from '@writ/kernel';
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
  /** Runs that are there before the job's own, in order. */
  readonly before: readonly ExampleRun[];
  /** What the world says to agents that wait for it, in order. */
  readonly signals: readonly ExampleSignal[];
  readonly folder: string;
  readonly scripts: readonly Script[];
}

/** A run that an example needs beside its own. */
export interface ExampleRun {
  readonly agent: string;
  readonly goal: string;
}

/** One thing that the world says. */
export interface ExampleSignal {
  /** What is waited for, without what may follow a colon: `human_reply`, `new_source_item`. */
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
  const { before = [], signals = [] } = value as Partial<Example>;
  return { ...value, before, signals, folder, scripts: loadScripts(join(folder, 'scripts')) };
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
