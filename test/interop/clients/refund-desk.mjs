import { Agent, MCPServerStreamableHttp, run } from '@openai/agents';

const writ = new MCPServerStreamableHttp({
  url: process.env.WRIT_MCP_URL,
  requestInit: { headers: { Authorization: `Bearer ${process.env.OPENAI_API_KEY}` } },
});
await writ.connect();
const agent = new Agent({ name: 'Refund desk', model: process.env.MODEL, mcpServers: [writ] });
const { finalOutput } = await run(agent, 'Refund 1,200 USD to user 42.', { maxTurns: 30 });
console.log('ANSWER', finalOutput);
await writ.close();
