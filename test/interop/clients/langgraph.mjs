import { tool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';

const look = tool(async () => 'The ticket is open.', {
  name: 'look',
  description: 'Reads the ticket.',
  schema: z.object({ ticket: z.string() }),
});
const agent = createReactAgent({
  llm: new ChatOpenAI({ model: process.env.MODEL }),
  tools: [look],
});
await agent.invoke(
  { messages: [{ role: 'user', content: 'Answer ticket 4711.' }] },
  { recursionLimit: 50 },
);
