// An agent of OpenAI Agents JS.
import {
  Agent,
  OpenAIChatCompletionsModel,
  Runner,
  setTracingDisabled,
  tool,
} from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { noOp, servePeer } from '../serve-peer.ts';

setTracingDisabled(true);
const baseURL = process.env.PEER_MODEL_URL;
const openai = new OpenAI({ apiKey: 'none', baseURL, maxRetries: 0 });
const agent = new Agent({
  name: 'two',
  instructions: 'You are a helpful agent.',
  model: new OpenAIChatCompletionsModel(openai, 'no-op'),
  tools: [
    tool({
      name: 'no_op',
      description: 'Does nothing.',
      parameters: z.object({ x: z.string() }),
      execute: async () => noOp(),
    }),
  ],
});
const runner = new Runner({ tracingDisabled: true });

servePeer(async () => (await runner.run(agent, 'What is the answer?')).finalOutput);
