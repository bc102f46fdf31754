import {
  ConfigError,
  type DataPath,
  type DocumentText,
  loadYaml,
  parseDuration,
  WatchedFile,
  type YamlInput,
} from '@writ/config';
import { isWritError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { AgentDefinition } from '../../domain/manifest/agent-definition.ts';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import type { Extensions } from '../../domain/manifest/applicable-settings.ts';
import { manifestOf } from '../../domain/manifest/manifest-of.ts';
import { AGENTS_SCHEMA } from './agents-schema.ts';

/** The agents of a file, with warnings for its author. */
export interface LoadedAgents {
  /** By name. */
  readonly agents: ReadonlyMap<string, AgentManifest>;
  /** One sentence for each zero that may have been meant as "unlimited". */
  readonly warnings: readonly string[];
}

/** A definition in YAML, where durations are text. */
interface AgentYaml extends Omit<AgentDefinition, 'model' | 'budget' | 'sub_agents'> {
  readonly model?: Omit<NonNullable<AgentDefinition['model']>, 'timeout'> & {
    readonly timeout?: string;
  };
  readonly budget?: Omit<NonNullable<AgentDefinition['budget']>, 'deadline'> & {
    readonly deadline?: string;
  };
  readonly sub_agents?: readonly (Omit<
    NonNullable<AgentDefinition['sub_agents']>[number],
    'ask_timeout'
  > & { readonly ask_timeout?: string })[];
}

/** An agents file that conforms to AGENTS_SCHEMA. */
interface AgentsYaml {
  readonly extensions?: Extensions;
  readonly agents: readonly AgentYaml[];
}

/**
 * Reads agent definitions from YAML that conforms to AGENTS_SCHEMA.
 * @throws ConfigError listing every problem as `file:line:column: what was expected`
 */
export function loadAgents(input: YamlInput): LoadedAgents {
  const file = typeof input === 'string' ? input : input.file;
  const { value, warnings, locate } = loadYaml<AgentsYaml>(input, AGENTS_SCHEMA);
  const problems: string[] = [];
  const agents = new Map<string, AgentManifest>();
  const names = new Set(value.agents.map(({ name }) => name));
  for (const [index, yaml] of value.agents.entries()) {
    const at = (...path: DataPath) => locate(['agents', index, ...path]);
    if (agents.has(yaml.name)) {
      problems.push(
        `${at('name')}: agent "${yaml.name}" is defined twice; agent names must be unique.`,
      );
    }
    for (const [child, { name }] of (yaml.sub_agents ?? []).entries()) {
      if (names.has(name)) continue;
      problems.push(
        `${at('sub_agents', child, 'name')}: agent "${name}" is not defined in this file.`,
      );
    }
    try {
      agents.set(yaml.name, manifestOf(definitionOf(yaml), value.extensions));
    } catch (error) {
      if (!isWritError(error)) throw error;
      const path = (error.metadata.field ?? '').split('.');
      problems.push(`${at(...path)}: ${error.message}`);
    }
  }
  if (problems.length > 0) throw new ConfigError(file, problems);
  return { agents, warnings };
}

function definitionOf(yaml: AgentYaml): AgentDefinition {
  const { model, budget, sub_agents, ...rest } = yaml;
  const { deadline, ...budgetRest } = budget ?? {};
  return {
    ...rest,
    ...(model !== undefined && { model: modelOf(model) }),
    budget: {
      ...budgetRest,
      ...(deadline !== undefined && { deadline: parseDuration(deadline) }),
    },
    sub_agents: (sub_agents ?? []).map(({ ask_timeout, ...agent }) => ({
      ...agent,
      ...(ask_timeout !== undefined && { ask_timeout: parseDuration(ask_timeout) }),
    })),
  };
}

function modelOf({ timeout, ...model }: NonNullable<AgentYaml['model']>) {
  return { ...model, ...(timeout !== undefined && { timeout: parseDuration(timeout) }) };
}

/**
 * The agents that clients can start, reloaded when their file changes. A change applies to new runs; a file with an
 * error is ignored. A run keeps the definitions that it started with (AG-1).
 */
export class AgentsFile {
  readonly #file: WatchedFile;
  readonly #log: Logger;
  #current: LoadedAgents['agents'] = new Map();

  private constructor(file: WatchedFile, log: Logger) {
    this.#file = file;
    this.#log = log;
  }

  /** @throws ConfigError listing every problem */
  static async open(input: YamlInput, log: Logger): Promise<AgentsFile> {
    const followed = new AgentsFile(new WatchedFile(input), log);
    followed.#take(await followed.#file.read());
    return followed;
  }

  /** The current agents by name. */
  get current(): LoadedAgents['agents'] {
    return this.#current;
  }

  /** Reloads the file if it changed; logs errors with file, line and column. */
  async look(): Promise<void> {
    try {
      const changed = await this.#file.changed();
      if (changed === undefined) return;
      this.#take(changed);
      this.#log.info('agents file reloaded');
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#log.error({ err: error }, 'agents file is invalid; keeping the previous agents');
    }
  }

  #take(document: DocumentText): void {
    const { agents, warnings } = loadAgents(document);
    for (const warning of warnings) this.#log.warn(warning);
    this.#current = agents;
  }
}
