import { InvalidRequestError, TOOL_NAME_PATTERN } from '@writ/kernel';
import type { Caller } from '@writ/rpc';
import type { AllowRules, Registry } from '../../domain/registry.ts';
import type { Tool } from '../../domain/tool.ts';

const DEFAULT_PAGE = 200;
/**
 * Maximum total size of the schemas, descriptions and allowlists on one page, in bytes; a single tool above this size
 * gets a page of its own. The limit of a gRPC message is 4 MiB.
 */
const MAX_PAGE_BYTES = 2 * 1024 * 1024;

const NO_RULES: AllowRules = { agents: undefined, tenants: undefined };

/** Filter and position of a page of tools. */
export interface ToolQuery {
  /** Empty for all. */
  readonly names: readonly string[];
  /** Zero for the default. */
  readonly pageSize: number;
  readonly pageToken: string;
}

/** A tool with the rules for the agents and tenants that may call it; a worker receives no rules. */
export interface ListedTool {
  readonly tool: Tool;
  readonly schemaJson: string;
  readonly rules: AllowRules;
}

/**
 * Lists every tool to the supervisor (TG-2), and to a worker the tools that its agent may call (TG-6).
 * @throws InvalidRequestError INVALID_PAGE_TOKEN
 */
export function listTools(
  registry: Registry,
  caller: Caller,
  { names, pageSize, pageToken }: ToolQuery,
): { readonly tools: readonly ListedTool[]; readonly nextPageToken: string } {
  if (pageToken !== '' && !TOOL_NAME_PATTERN.test(pageToken)) {
    throw new InvalidRequestError(
      'INVALID_PAGE_TOKEN',
      'page_token is invalid. Use next_page_token of the previous response.',
      { field: 'page_token' },
    );
  }
  const wanted = visible(registry, caller).filter(
    ({ name }) => name > pageToken && (names.length === 0 || names.includes(name)),
  );
  const rulesOf = (tool: Tool) => (caller.agent ? NO_RULES : registry.rulesOf(tool.name));
  const tools: ListedTool[] = [];
  const size = pageSize === 0 ? DEFAULT_PAGE : pageSize;
  let bytes = 0;
  for (const tool of wanted) {
    const listed = { tool, schemaJson: JSON.stringify(tool.inputSchema), rules: rulesOf(tool) };
    bytes += sizeOf(listed);
    if (tools.length === size || (tools.length > 0 && bytes > MAX_PAGE_BYTES)) break;
    tools.push(listed);
  }
  const hasMore = tools.length < wanted.length;
  return { tools, nextPageToken: hasMore ? (tools.at(-1)?.tool.name ?? '') : '' };
}

function visible(registry: Registry, { agent }: Caller): readonly Tool[] {
  const all = Array.from(registry.tools.values());
  if (agent === undefined) return all;
  const client = { tenant: agent.tenant, agentName: agent.agent.name };
  return all.filter(({ name }) => agent.tools.includes(name) && registry.allows(client, name));
}

function sizeOf({ tool, schemaJson, rules: { agents, tenants } }: ListedTool): number {
  const names = [...(agents?.names ?? []), ...(tenants?.names ?? [])];
  const ofNames = names.reduce((sum, name) => sum + name.length, 0);
  return Buffer.byteLength(schemaJson) + Buffer.byteLength(tool.description) + ofNames;
}
