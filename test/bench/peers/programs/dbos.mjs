// A durable workflow of DBOS whose steps are the calls of the model and of the tool.
import { DBOS } from '@dbos-inc/dbos-sdk';
import OpenAI from 'openai';
import { noOp, servePeer } from '../serve-peer.ts';

const baseURL = process.env.PEER_MODEL_URL;
const openai = new OpenAI({ apiKey: 'none', baseURL, maxRetries: 0 });
const model = 'no-op';
const parameters = { type: 'object', properties: { x: { type: 'string' } }, required: ['x'] };
const tools = [
  { type: 'function', function: { name: 'no_op', description: 'Does nothing.', parameters } },
];

async function ask(messages) {
  const { choices } = await openai.chat.completions.create({ model, messages, tools });
  return choices[0].message;
}

const workflow = DBOS.registerWorkflow(
  async () => {
    const messages = [
      { role: 'system', content: 'You are a helpful agent.' },
      { role: 'user', content: 'What is the answer?' },
    ];
    for (;;) {
      const message = await DBOS.runStep(() => ask(messages), { name: 'model' });
      const [call] = message.tool_calls ?? [];
      if (call === undefined) return message.content;
      const content = await DBOS.runStep(async () => JSON.stringify(noOp()), { name: 'tool' });
      messages.push(message, { role: 'tool', tool_call_id: call.id, content });
    }
  },
  { name: 'agent' },
);

DBOS.setConfig({
  name: 'peer',
  systemDatabaseUrl: process.env.PEER_POSTGRES_URL,
  logLevel: 'error',
  runAdminServer: false,
});
await DBOS.launch();

servePeer(
  () => workflow(),
  () => DBOS.shutdown(),
);
