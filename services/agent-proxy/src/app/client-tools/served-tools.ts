import { type AgentKey, canonicalDigest } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import type { ModelToolCall, OfferedTool } from '../../wire/dialects/review-form.ts';
import { mcpTool } from '../../wire/mcp-tool.ts';

/**
 * Returns the names of calls to tools that the MCP endpoint serves this agent: they are reviewed there, with a writ. Such a
 * tool has the name and the schema of the registry; clients put the name of the server before it.
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
