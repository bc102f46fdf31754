import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

// An MCP server over stdio, built with the official SDK, with tools that return content other than text.
const AUDIO = { type: 'audio', data: 'UklGRiQAAABXQVZF', mimeType: 'audio/wav' } as const;
const SCORE = { bars: 4 };
const RESULTS: Readonly<Record<string, object>> = {
  sing: { content: [AUDIO] },
  compose: {
    content: [{ type: 'text', text: JSON.stringify(SCORE) }, AUDIO],
    structuredContent: SCORE,
  },
  record: { content: [{ ...AUDIO, data: 'A'.repeat(100_000) }] },
};

const server = new Server({ name: 'media', version: '1.0.0' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, async () => ({
  tools: Object.keys(RESULTS).map((name) => ({ name, inputSchema: { type: 'object' as const } })),
}));
server.setRequestHandler(CallToolRequestSchema, async ({ params: { name } }) => ({
  content: [],
  ...RESULTS[name],
}));
await server.connect(new StdioServerTransport());
