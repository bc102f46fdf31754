// An agent of Mastra without storage.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';
import { noOp, servePeer } from '../serve-peer.ts';

const provider = createOpenAICompatible({
  name: 'bench',
  apiKey: 'none',
  baseURL: process.env.PEER_MODEL_URL,
});
const agent = new Agent({
  id: 'two',
  name: 'two',
  instructions: 'You are a helpful agent.',
  model: provider('no-op'),
  tools: {
    no_op: createTool({
      id: 'no_op',
      description: 'Does nothing.',
      inputSchema: z.object({ x: z.string() }),
      execute: async () => noOp(),
    }),
  },
  maxRetries: 0,
});

servePeer(async () => (await agent.generate('What is the answer?')).text);
