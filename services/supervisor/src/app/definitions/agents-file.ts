import {
  ConfigError,
  type DataPath,
  type DocumentText,
  loadYaml,
  WatchedFile,
  type YamlInput,
} from '@writ/config';
import { isWritError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { AgentSettings } from '../../domain/manifest/agent-definition.ts';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import type { Extensions } from '../../domain/manifest/applicable-settings.ts';
import { withChildDescriptions } from '../../domain/manifest/child-descriptions.ts';
import { assertSubAgents, byName, misplaced } from './agents-in-code.ts';
import { AGENTS_SCHEMA } from './agents-schema.ts';
import { manifestOf } from './manifest-of.ts';

/** The agents of a file and the agents defined in code, with warnings about the file. */
export interface LoadedAgents {
  /** By name. */
  readonly agents: ReadonlyMap<string, AgentManifest>;
  /** One sentence for each zero that may have been meant as "unlimited". */
  readonly warnings: readonly string[];
}

/** An agents file that conforms to AGENTS_SCHEMA. */
interface AgentsYaml {
  readonly extensions?: Extensions;
  readonly agents: readonly AgentSettings[];
}

/**
 * Reads agent definitions from YAML that conforms to AGENTS_SCHEMA.
 * @param inCode agents defined in code, which agents of the file may have as sub-agents
 * @throws ConfigError listing every problem as `file:line:column: what was expected`
 */
export function loadAgents(
  input: YamlInput,
  inCode: LoadedAgents['agents'] = new Map(),
): LoadedAgents {
  const file = typeof input === 'string' ? input : input.file;
  const { value, warnings, locate } = loadYaml<AgentsYaml>(input, AGENTS_SCHEMA);
  const problems: string[] = [];
  const agents = new Map(inCode);
  const names = new Set([...inCode.keys(), ...value.agents.map(({ name }) => name)]);
  for (const [index, yaml] of value.agents.entries()) {
    const at = (...path: DataPath) => locate(['agents', index, ...path]);
    if (agents.has(yaml.name)) {
      const where = inCode.has(yaml.name) ? 'in code, too' : 'twice';
      problems.push(
        `${at('name')}: agent "${yaml.name}" is defined ${where}; agent names must be unique.`,
      );
    }
    for (const [child, { name }] of (yaml.sub_agents ?? []).entries()) {
      if (names.has(name)) continue;
      problems.push(
        `${at('sub_agents', child, 'name')}: agent "${name}" is not defined in this file.`,
      );
    }
    try {
      agents.set(yaml.name, manifestOf(yaml, value.extensions));
    } catch (error) {
      if (!isWritError(error)) throw error;
      const path = (error.metadata.field ?? '').split('.');
      problems.push(`${at(...path)}: ${error.message}`);
    }
  }
  for (const [index, { kind, sub_agents: children = [] }] of value.agents.entries()) {
    for (const [child, { name }] of children.entries()) {
      const found = agents.get(name);
      const where = locate(['agents', index, 'sub_agents', child, 'name']);
      if (found !== undefined)
        problems.push(...misplaced(kind, found, `${where}: agent "${name}"`));
    }
  }
  if (problems.length > 0) throw new ConfigError(file, problems);
  return { agents, warnings };
}

/**
 * The agents defined in code and the agents of a file, which is reloaded when it changes. A change applies to new runs;
 * a run keeps the definitions with which it started (AG-1). At startup, a file with an error is rejected with
 * ConfigError; an error during a reload is logged, and the previous agents stay in effect.
 */
export class AgentsFile {
  readonly #file: WatchedFile | undefined;
  readonly #log: Logger;
  readonly #inCode: LoadedAgents['agents'];
  #current: LoadedAgents['agents'];

  private constructor(file: WatchedFile | undefined, inCode: LoadedAgents['agents'], log: Logger) {
    this.#file = file;
    this.#inCode = inCode;
    this.#current = withChildDescriptions(inCode);
    this.#log = log;
  }

  /**
   * @param input undefined = only the agents defined in code
   * @throws ConfigError listing every problem
   */
  static async open(
    input: YamlInput | undefined,
    inCode: readonly AgentManifest[],
    log: Logger,
  ): Promise<AgentsFile> {
    const file = input === undefined ? undefined : new WatchedFile(input);
    const opened = new AgentsFile(file, byName(inCode), log);
    if (file === undefined) assertSubAgents(inCode, opened.#inCode);
    else opened.#load(await file.read());
    return opened;
  }

  /** The current agents by name. */
  get current(): LoadedAgents['agents'] {
    return this.#current;
  }

  /** Reloads the file if it changed; logs errors with file, line and column. */
  async look(): Promise<void> {
    try {
      const changed = await this.#file?.changed();
      if (changed === undefined) return;
      this.#load(changed);
      this.#log.info('agents file reloaded');
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#log.error({ err: error }, 'agents file is invalid; keeping the previous agents');
    }
  }

  #load(document: DocumentText): void {
    const { agents, warnings } = loadAgents(document, this.#inCode);
    assertSubAgents([...this.#inCode.values()], agents);
    for (const warning of warnings) this.#log.warn(warning);
    this.#current = withChildDescriptions(agents);
  }
}
