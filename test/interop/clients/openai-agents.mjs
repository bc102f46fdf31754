import { Agent, run, tool } from '@openai/agents';
import { z } from 'zod';

const look = tool({
  name: 'look',
  description: 'Reads the ticket.',
  parameters: z.object({ ticket: z.string() }),
  execute: async () => 'The ticket is open.',
});
const agent = new Agent({ name: 'Support', model: process.env.MODEL, tools: [look] });
await run(agent, 'Answer ticket 4711.', { maxTurns: 20 });
