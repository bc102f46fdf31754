// Two calls of the OpenAI SDK and the tool between them; with PEER_GATEWAY through a gateway.
import OpenAI from 'openai';
import { noOp, servePeer } from '../serve-peer.ts';
import { startAgentProxy } from './agent-proxy.mjs';
import { startPortkey } from './portkey.mjs';

const baseURL = process.env.PEER_MODEL_URL;
const GATEWAYS = { portkey: startPortkey, 'agent-proxy': startAgentProxy };
const gateway = await GATEWAYS[process.env.PEER_GATEWAY]?.(baseURL);
const openai = new OpenAI({ apiKey: 'none', baseURL, maxRetries: 0, ...gateway?.client });
const model = 'no-op';
const tools = [
  {
    type: 'function',
    function: {
      name: 'no_op',
      description: 'Does nothing.',
      parameters: { type: 'object', properties: { x: { type: 'string' } }, required: ['x'] },
    },
  },
];

servePeer(
  async () => {
    const messages = [
      { role: 'system', content: 'You are a helpful agent.' },
      { role: 'user', content: 'What is the answer?' },
    ];
    const first = await openai.chat.completions.create({ model, messages, tools });
    const { message } = first.choices[0];
    const [{ id: tool_call_id }] = message.tool_calls;
    messages.push(message, { role: 'tool', tool_call_id, content: JSON.stringify(noOp()) });
    const second = await openai.chat.completions.create({ model, messages, tools });
    return second.choices[0].message.content;
  },
  async () => gateway?.close(),
);
