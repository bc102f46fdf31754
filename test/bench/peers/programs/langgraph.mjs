// The prebuilt agent of LangGraph JS with the checkpointer that PEER_STORE names.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { tool } from '@langchain/core/tools';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';
import { noOp, servePeer } from '../serve-peer.ts';
import { openDatabase } from './node-sqlite.mjs';

const CHECKPOINTERS = {
  none: async () => undefined,
  sqlite: async () => {
    const { SqliteSaver } = await import('@langchain/langgraph-checkpoint-sqlite');
    return new SqliteSaver(openDatabase(join(process.env.PEER_FOLDER, 'checkpoints.db')));
  },
  postgres: async () => {
    const { PostgresSaver } = await import('@langchain/langgraph-checkpoint-postgres');
    const saver = PostgresSaver.fromConnString(process.env.PEER_POSTGRES_URL);
    await saver.setup();
    return saver;
  },
};

const checkpointSaver = await CHECKPOINTERS[process.env.PEER_STORE]();
const agent = createReactAgent({
  llm: new ChatOpenAI({
    apiKey: 'none',
    model: 'no-op',
    maxRetries: 0,
    configuration: { baseURL: process.env.PEER_MODEL_URL },
  }),
  tools: [
    tool(async () => noOp(), {
      name: 'no_op',
      description: 'Does nothing.',
      schema: z.object({ x: z.string() }),
    }),
  ],
  prompt: 'You are a helpful agent.',
  ...(checkpointSaver !== undefined && { checkpointSaver }),
});

servePeer(async () => {
  const input = { messages: [{ role: 'user', content: 'What is the answer?' }] };
  const { messages } = await agent.invoke(input, { configurable: { thread_id: randomUUID() } });
  return messages.at(-1).content;
});
