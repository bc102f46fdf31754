import { type AgentKey, canonicalDigest } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import type { ModelToolCall, OfferedTool } from '../../wire/dialects/review-form.ts';
import { mcpTool } from '../../wire/mcp-tool.ts';

/**
 * Returns the names of the called tools that the MCP endpoint serves to this agent; the endpoint reviews their calls
 * and executes them with a writ. A tool of the client is a tool of the endpoint if the schemas are equal, and the names
 * are equal apart from the server name that clients prepend.
 */
export async function servedNames(
  context: ProxyContext,
  agent: AgentKey,
  offered: readonly OfferedTool[],
  calls: readonly ModelToolCall[],
): Promise<ReadonlySet<string>> {
  const names = new Set(calls.map(({ name }) => name));
  const candidates = offered.filter(({ name, schemaDigest }) => schemaDigest && names.has(name));
  if (candidates.length === 0) return new Set();
  const tools = await context.toolLists.of(context, agent);
  const isServed = ({ name, schemaDigest }: OfferedTool) =>
    tools.some(
      (tool) =>
        (name === tool.name || name.endsWith(`__${tool.name}`)) &&
        canonicalDigest(mcpTool(tool).inputSchema) === schemaDigest,
    );
  return new Set(candidates.filter(isServed).map(({ name }) => name));
}
