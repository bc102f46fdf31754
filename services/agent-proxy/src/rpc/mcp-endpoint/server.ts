import { ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server';
import type { ProxyContext } from '../../context.ts';
import { mcpTool } from '../../wire/mcp-tool.ts';
import { callToolHandler } from './call-tool.ts';
import { type Era, TASKS } from './client-terms.ts';
import type { Exchange } from './exchange.ts';
import { serveTasks } from './tasks.ts';

/** How long a client may use a list of tools, ms. */
const LIST_TTL_MS = 60_000;
const INSTRUCTIONS =
  'Every call is reviewed by policy before it is executed, and may wait for a person. A result says when a call was ' +
  'executed with changed arguments. When it says that nothing was executed yet, repeat the call with exactly the same arguments.';

/** Creates the MCP server for one request: tools only; nothing is kept between requests. */
export function createServer(context: ProxyContext, exchange: Exchange, era: Era): Server {
  const server = new Server(
    { name: 'writ', title: 'Writ', version: '0.1.0' },
    {
      capabilities: { tools: {}, ...(era === 'modern' && { extensions: { [TASKS]: {} } }) },
      instructions: INSTRUCTIONS,
      cacheHints: { 'tools/list': { ttlMs: LIST_TTL_MS, cacheScope: 'private' } },
    },
  );
  const listTools = () => context.toolLists.of(context, exchange.agent);
  server.setRequestHandler('tools/list', async () => ({ tools: (await listTools()).map(mcpTool) }));
  const callTool = callToolHandler(context, exchange, era);
  server.setRequestHandler('tools/call', async (request, ctx) => {
    const { name } = request.params;
    const tools = await listTools();
    if (tools.some((tool) => tool.name === name)) return await callTool(request.params, ctx);
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name}`);
  });
  if (era === 'modern') serveTasks(server, context, exchange);
  return server;
}
