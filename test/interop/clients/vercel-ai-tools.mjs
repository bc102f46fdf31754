import { createOpenAI } from '@ai-sdk/openai';
import { isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

const openai = createOpenAI();
const shell = tool({
  description: 'Executes a command.',
  inputSchema: z.object({ command: z.string() }),
  execute: async ({ command }) => {
    console.log('EXECUTED', command);
    return 'done';
  },
});
const { text } = streamText({
  model: openai(process.env.MODEL),
  prompt: 'Clean up.',
  tools: { shell },
  stopWhen: isStepCount(20),
});
console.log('ANSWER', await text);
