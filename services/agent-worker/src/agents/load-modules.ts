import { pathToFileURL } from 'node:url';
import { ConfigError, loadFailure } from '@writ/config';
import {
  type AgentDefinition,
  type HistoryProviderDefinition,
  isId,
  MIDDLEWARE_OPTIONS,
  type MiddlewareDefinition,
  STRATEGY_OPTIONS,
  type StrategyDefinition,
} from '@writ/kernel';
import { middlewareLevels } from './middleware/index.ts';

const SETTING = 'WRIT_AGENT_MODULES';

/** What the modules of a worker define, by name (AG-1, AG-8, AG-9). */
export interface AgentModules {
  /** The versions of each agent, the current one first (RT-1). */
  readonly agents: ReadonlyMap<string, readonly AgentDefinition[]>;
  readonly middleware: ReadonlyMap<string, MiddlewareDefinition>;
  readonly strategies: ReadonlyMap<string, StrategyDefinition>;
  readonly historyProviders: ReadonlyMap<string, HistoryProviderDefinition>;
}

/** How a module exports one kind of definition: error texts, validation and reserved names. */
interface Export {
  readonly what: string;
  readonly defineFunction: string;
  readonly isDefinition: (value: object) => boolean;
  /** Names that modules cannot use. */
  readonly reserved: readonly string[];
}

const EXPORTS: Readonly<Record<keyof AgentModules, Export>> = {
  agents: {
    what: 'agent',
    defineFunction: 'defineAgent',
    isDefinition: (value) => isFunction(value, 'run') && hasVersion(value),
    reserved: [],
  },
  middleware: {
    what: 'middleware',
    defineFunction: 'defineMiddleware',
    isDefinition: (value) => middlewareLevels.some((level) => isFunction(value, level)),
    reserved: middlewareLevels.flatMap((level) => Object.keys(MIDDLEWARE_OPTIONS[level])),
  },
  strategies: {
    what: 'strategy',
    defineFunction: 'defineStrategy',
    isDefinition: (value) => isFunction(value, 'create'),
    reserved: Object.keys(STRATEGY_OPTIONS),
  },
  historyProviders: {
    what: 'history provider',
    defineFunction: 'defineHistoryProvider',
    isDefinition: (value) => isFunction(value, 'create'),
    reserved: [],
  },
};
const NAMES = Object.keys(EXPORTS) as (keyof AgentModules)[];

/**
 * Loads the modules of a worker.
 * @param modules absolute paths
 * @param agents further agents, with unique names
 * @throws ConfigError naming every module that cannot be loaded, exports no list or an invalid one, or defines a name
 *   that is built in or already defined
 */
export async function loadAgentModules(
  modules: readonly string[],
  agents: readonly AgentDefinition[] = [],
): Promise<AgentModules> {
  const loaded = {
    agents: Map.groupBy(agents, ({ name }) => name),
    middleware: new Map(),
    strategies: new Map(),
    historyProviders: new Map(),
  };
  const problems: string[] = [];
  for (const module of modules) {
    const exported = await exportsOf(module, problems);
    if (exported === undefined) continue;
    for (const name of NAMES) {
      addAll(loaded[name], { module, name, list: exported[name] ?? [] }, problems);
    }
  }
  if (problems.length > 0) throw new ConfigError(SETTING, problems);
  return loaded;
}

type Exports = Partial<Record<keyof AgentModules, unknown>>;

async function exportsOf(module: string, problems: string[]): Promise<Exports | undefined> {
  let exported: Exports;
  try {
    exported = (await import(pathToFileURL(module).href)) as Exports;
  } catch (error) {
    problems.push(`the module ${module} cannot be loaded: ${loadFailure(module, error)}.`);
    return undefined;
  }
  if (NAMES.some((name) => exported[name] !== undefined)) return exported;
  problems.push(`the module ${module} exports none of the lists ${NAMES.join(', ')}.`);
  return undefined;
}

/** A list that a module exports. */
interface ExportedList {
  readonly module: string;
  readonly name: keyof AgentModules;
  readonly list: unknown;
}

function addAll(
  known: Map<string, unknown>,
  { module, name, list }: ExportedList,
  problems: string[],
): void {
  const { what, defineFunction, isDefinition, reserved } = EXPORTS[name];
  const isValid = (value: unknown): value is { readonly name: string } =>
    typeof value === 'object' && value !== null && isNamed(value) && isDefinition(value);
  if (!Array.isArray(list) || !list.every(isValid)) {
    problems.push(
      `the module ${module} exports "${name}", which is not a list of ${defineFunction} results.`,
    );
    return;
  }
  if (name === 'agents') {
    addAgents(known as Map<string, AgentDefinition[]>, module, list as AgentDefinition[], problems);
    return;
  }
  for (const definition of list) {
    const { name: id } = definition;
    if (reserved.includes(id)) {
      problems.push(`${module} defines the ${what} ${id}, which is built in; choose another name.`);
    } else if (known.has(id)) {
      problems.push(
        `${module} defines the ${what} ${id}, which is already defined; choose another name.`,
      );
    }
    known.set(id, definition);
  }
}

/** Adds agents by name; all versions of an agent are in one module, in the order of its list. */
function addAgents(
  known: Map<string, AgentDefinition[]>,
  module: string,
  list: readonly AgentDefinition[],
  problems: string[],
): void {
  for (const [id, versions] of Map.groupBy(list, ({ name }) => name)) {
    const [repeated] = versions.filter(
      (one, index) => versions.findIndex((each) => versionOf(each) === versionOf(one)) < index,
    );
    if (known.has(id)) {
      problems.push(
        `${module} defines the agent ${id}, which another module or createAgent already defines.`,
      );
    } else if (repeated !== undefined) {
      problems.push(`${module} defines version "${versionOf(repeated)}" of the agent ${id} twice.`);
    }
    known.set(id, versions);
  }
}

/** The version of an agent's code; empty by default. */
export function versionOf({ version = '' }: AgentDefinition): string {
  return version;
}

function hasVersion(value: object): boolean {
  const version: unknown = Reflect.get(value, 'version');
  return version === undefined || (typeof version === 'string' && isId(version));
}

function isNamed(value: object): boolean {
  const name: unknown = Reflect.get(value, 'name');
  return typeof name === 'string' && isId(name);
}

function isFunction(value: object, name: string): boolean {
  return typeof Reflect.get(value, name) === 'function';
}
