import { createOpenAI } from '@ai-sdk/openai';
import { generateText, isStepCount, tool } from 'ai';
import { z } from 'zod';

const openai = createOpenAI();
const look = tool({
  description: 'Reads the ticket.',
  inputSchema: z.object({ ticket: z.string() }),
  execute: async () => 'The ticket is open.',
});
await generateText({
  model: openai(process.env.MODEL),
  prompt: 'Answer ticket 4711.',
  tools: { look },
  stopWhen: isStepCount(20),
});
