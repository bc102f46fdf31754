import { readFileSync } from 'node:fs';
import { loadAgentModules } from '@writ/agent-worker';
import { ConfigError } from '@writ/config';
import { readCatalog } from '@writ/execution-meter';
import { formatProblem, loadPolicy } from '@writ/policy';
import { type AgentManifest, loadAgents } from '@writ/supervisor';
import { loadToolsFile, localSourceProblems, type ToolsFile } from '@writ/tool-gateway';
import { checkAgents } from './check-agents.ts';
import { type Finding, Findings } from './findings.ts';

/** The files that configure a platform, as absolute paths. */
export interface SettingsFiles {
  /** Undefined when every agent is defined in code. */
  readonly agents?: string;
  readonly policy: string;
  /** Undefined when an external tool gateway provides the tools. */
  readonly tools?: string;
  readonly models: string;
  /** Modules with agents, middleware and strategies. */
  readonly agentModules: readonly string[];
}

/** Options of {@link checkFiles}. */
export interface CheckOptions {
  /** Values of `${NAME}` references, and provider keys. Never part of a finding. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Agents created by createAgent. */
  readonly agents?: readonly AgentManifest[];
  /** Whether the modules of agents are imported. */
  readonly importModules?: boolean;
  /** Whether the modules of tools are imported and their tools created, as the gateway does at its start. */
  readonly createTools?: boolean;
}

/**
 * Checks each file, and the references between them: tools, models, prices, keys and sub-agents of agents; tools and
 * arguments of the policy against the schemas of the tools; the code of custom agents. Every finding is listed, not
 * only the first. `writ doctor`, `writ dev`, openProject and openSession do these checks; startPlatform does not
 * (SYS-3).
 */
export async function checkFiles(
  files: SettingsFiles,
  options: CheckOptions,
): Promise<readonly Finding[]> {
  const { variables } = options;
  const findings = new Findings();
  const { tools: toolsFile } = files;
  const tools =
    toolsFile === undefined
      ? undefined
      : await findings.collect(() => loadToolsFile(toolsFile, variables));
  const models = await findings.collect(() => readCatalog(files.models, variables));
  const agentsInCode = new Map((options.agents ?? []).map((agent) => [agent.name, agent]));
  const agents = await findings.collect(() =>
    files.agents === undefined
      ? { agents: agentsInCode, warnings: [] }
      : loadAgents(files.agents, agentsInCode),
  );
  for (const warning of [tools, models, agents].flatMap((one) => one?.warnings ?? []))
    findings.warn(warning);
  const modules = options.importModules
    ? await findings.collect(() => loadAgentModules(files.agentModules))
    : undefined;
  if (options.createTools && tools !== undefined)
    for (const problem of await localSourceProblems(tools, variables)) findings.error(problem);
  await checkPolicy(files.policy, tools, findings);
  if (agents === undefined) return findings.all;
  await checkAgents({
    file: files.agents,
    agents: agents.agents,
    tools,
    catalog: models?.catalog,
    modelsFile: files.models,
    customAgents: modules && new Set([...modules.agents.keys(), ...namesInCode(agentsInCode)]),
    variables,
    findings,
  });
  return findings.all;
}

/** Returns the names of the agents created by createAgent; their definitions contain their functions. */
function namesInCode(agents: ReadonlyMap<string, AgentManifest>): Iterable<string> {
  return agents.keys();
}

async function checkPolicy(
  file: string,
  tools: ToolsFile | undefined,
  findings: Findings,
): Promise<void> {
  const toolSchemas =
    tools &&
    Object.fromEntries(
      [...tools.registry.tools].map(([name, tool]) => [name, tool.contract.schema]),
    );
  const policy = await findings.collect(() => loadPolicy(textOf(file), { file, toolSchemas }));
  for (const warning of policy?.warnings ?? []) findings.warn(formatProblem(warning));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new ConfigError(file, [`${file} cannot be read (${code}).`], { cause: error });
  }
}
