import { type DataPath, loadYaml } from '@writ/config';
import { CATALOG_SCHEMA, type Catalog, PriceList } from '@writ/execution-meter';
import { systemClock } from '@writ/kernel';
import { AGENTS_SCHEMA, type AgentManifest } from '@writ/supervisor';
import type { ToolsFile } from '@writ/tool-gateway';
import type { Findings } from './findings.ts';

/**
 * The agents, and the tools, models and code that they refer to. `tools` and `catalog` are undefined when their file is
 * invalid or is read by another program, and `customAgents` when the modules are invalid or were not imported; the
 * corresponding references are then not checked.
 */
export interface AgentReferences {
  /** Undefined when every agent is defined in code. */
  readonly file: string | undefined;
  readonly agents: ReadonlyMap<string, AgentManifest>;
  readonly tools: ToolsFile | undefined;
  readonly catalog: Catalog | undefined;
  readonly modelsFile: string;
  /** Names of the agents that modules define, and of those created by createAgent. */
  readonly customAgents: ReadonlySet<string> | undefined;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly findings: Findings;
}

/** The fields of the agents file that locate an agent in a message. */
interface AgentNames {
  readonly agents: readonly { readonly name: string }[];
}

/** Checks that the tools, models, keys, prices and code of agents exist. */
export async function checkAgents(references: AgentReferences): Promise<void> {
  const place = placesIn(references.file);
  for (const agent of references.agents.values()) {
    checkTools(agent, references, place);
    checkCode(agent, references, place);
  }
  await checkModels(references, place);
}

/** Place of a field of an agent, as the start of a message. */
type Place = (agent: string, ...path: DataPath) => string;

function placesIn(file: string | undefined): Place {
  if (file === undefined) return (agent) => `agent ${agent}`;
  const { value, locate } = loadYaml<AgentNames>(file, AGENTS_SCHEMA);
  return (agent, ...path) => {
    const index = value.agents.findIndex(({ name }) => name === agent);
    return index < 0 ? `agent ${agent}` : locate(['agents', index, ...path]);
  };
}

/**
 * Reports tools that do not exist. The tools of MCP servers are not checked, because they are known only after the
 * gateway has connected.
 */
function checkTools(agent: AgentManifest, { tools, findings }: AgentReferences, at: Place): void {
  if (tools === undefined) return;
  const declared = new Set([
    ...tools.registry.tools.keys(),
    ...tools.sources.flatMap((s) => s.tools),
  ]);
  const servers = tools.sources.filter(({ origin }) => origin.kind === 'mcp');
  for (const [index, tool] of agent.tools.entries()) {
    if (declared.has(tool) || servers.some(({ name }) => tool.startsWith(`${name}__`))) continue;
    const known = [...declared].join(', ') || 'none';
    findings.error(
      `${at(agent.name, 'tools', index)}: tool ${tool} does not exist. Available tools: ${known}.`,
    );
  }
}

function checkCode(agent: AgentManifest, { customAgents, findings }: AgentReferences, at: Place) {
  if (agent.kind !== 'custom' || customAgents === undefined || customAgents.has(agent.name)) return;
  findings.error(
    `${at(agent.name, 'kind')}: no module defines the custom agent ${agent.name}. Export it with defineAgent from an agent module.`,
  );
}

async function checkModels(references: AgentReferences, at: Place): Promise<void> {
  const { agents, catalog, findings } = references;
  if (catalog === undefined) return;
  const used = new Set<string>();
  for (const { name, model } of agents.values()) {
    if (model.model === '') continue;
    if (catalog.aliases.includes(model.model)) used.add(model.model);
    else {
      const known = catalog.aliases.join(', ') || 'none';
      findings.error(
        `${at(name, 'model', 'model')}: model ${model.model} does not exist. Available models: ${known}.`,
      );
    }
  }
  const { locate } = loadYaml(references.modelsFile, CATALOG_SCHEMA);
  for (const alias of used) await checkModel(alias, references, locate(['models', alias]));
}

async function checkModel(
  alias: string,
  { catalog, variables, findings }: AgentReferences,
  place: string,
): Promise<void> {
  const model = catalog?.modelOf(alias);
  if (model === undefined) return;
  if ('missingVariable' in model) {
    findings.error(
      `${place}: model ${alias} needs the variable ${model.missingVariable}, which is not set.`,
    );
    return;
  }
  const { keyVariable, pricedAs } = model.entry;
  if (keyVariable !== undefined && (variables[keyVariable] ?? '').trim() === '')
    findings.error(
      `${place}: model ${alias} needs a provider key in ${keyVariable}, which is not set.`,
    );
  if ((await new PriceList(systemClock).pricesOf(model.entry)) === undefined)
    findings.error(
      `${place}: model ${alias} has no price, because the price list does not have ${pricedAs}. Set prices or priced_as.`,
    );
}
