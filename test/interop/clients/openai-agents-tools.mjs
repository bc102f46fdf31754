import { Agent, run, tool } from '@openai/agents';
import { z } from 'zod';

const shell = tool({
  name: 'shell',
  description: 'Executes a command.',
  parameters: z.object({ command: z.string() }),
  execute: async ({ command }) => {
    console.log('EXECUTED', command);
    return 'done';
  },
});
const agent = new Agent({ name: 'Coder', model: process.env.MODEL, tools: [shell] });
const { finalOutput } = await run(agent, 'Clean up.', { maxTurns: 20 });
console.log('ANSWER', finalOutput);
