import type { ServerResponse } from 'node:http';
import type Anthropic from '@anthropic-ai/sdk';
import { describe, expect, it } from 'vitest';
import { CLAUDE, startExternalRun } from '../agent-proxy/external-run.ts';
import { pendingApproval } from '../agent-proxy/mcp-run.ts';
import { event, type ModelRequest, scriptedModel } from '../agent-proxy/scripted-model.ts';
import { approveEdited } from '../approve-edited.ts';
import { reviewedPlatform } from './reviewed-calls.ts';

/** The first answer of the model: thinking, some of it encrypted, a text and a call. */
const THINKING = [
  { type: 'thinking', thinking: 'The build is large. I remove it.', signature: 'EqQBCkYIBxgC+w==' },
  { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix=' },
] as const;
const CALL = { type: 'tool_use', id: 'toolu_1', name: 'shell', input: { command: 'rm -rf build' } };
const FIRST = [...THINKING, { type: 'text', text: 'I clean up.' }, CALL];
const LAST = [{ type: 'text', text: 'It is clean.' }];

type Block = Readonly<Record<string, unknown>>;

/**
 * Returns the error of the provider for a turn whose tool call lacks its thinking or has different thinking; undefined
 * when the turn is valid.
 */
function refusalOf({ body }: ModelRequest): string | undefined {
  const turns = body.messages as { readonly role: string; readonly content: readonly Block[] }[];
  const index = turns.findLastIndex(({ role }) => role === 'assistant');
  if (index < 0) return undefined;
  const { content } = turns[index] as (typeof turns)[number];
  const isThinking = ({ type }: Block) => type === 'thinking' || type === 'redacted_thinking';
  const at = `messages.${index}.content.0`;
  if (content[0] === undefined || !isThinking(content[0])) {
    return `${at}.type: Expected thinking or redacted_thinking, but found ${content[0]?.type}.`;
  }
  const isSame = JSON.stringify(content.filter(isThinking)) === JSON.stringify(THINKING);
  return isSame ? undefined : `${at}: Invalid signature in thinking block`;
}

const DELTAS: Readonly<Record<string, (block: Block) => Block[]>> = {
  thinking: ({ thinking, signature }) => [
    ...String(thinking)
      .split(/(?<= )/)
      .map((part) => ({ type: 'thinking_delta', thinking: part })),
    { type: 'signature_delta', signature },
  ],
  redacted_thinking: () => [],
  text: ({ text }) => [{ type: 'text_delta', text }],
  tool_use: ({ input }) => [{ type: 'input_json_delta', partial_json: JSON.stringify(input) }],
};
const STARTS: Readonly<Record<string, Block>> = {
  thinking: { thinking: '', signature: '' },
  text: { text: '' },
  tool_use: { input: {} },
};

function answer({ body }: ModelRequest, response: ServerResponse, content: readonly Block[]) {
  const usage = { input_tokens: 30, output_tokens: 5 };
  const isCall = content.some(({ type }) => type === 'tool_use');
  const end = { stop_reason: isCall ? 'tool_use' : 'end_turn', stop_sequence: null };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-1', usage };
  if (body.stream !== true) {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ ...message, ...end, content }));
    return;
  }
  response.setHeader('content-type', 'text/event-stream');
  response.write(event({ type: 'message_start', message: { ...message, content: [] } }));
  for (const [index, block] of content.entries()) {
    const type = String(block.type);
    const content_block = { ...block, ...STARTS[type] };
    response.write(event({ type: 'content_block_start', index, content_block }));
    for (const delta of DELTAS[type]?.(block) ?? []) {
      response.write(event({ type: 'content_block_delta', index, delta }));
    }
    response.write(event({ type: 'content_block_stop', index }));
  }
  response.write(event({ type: 'message_delta', delta: end, usage: { output_tokens: 5 } }));
  response.end(event({ type: 'message_stop' }));
}

/** Starts a model that returns thinking, and whose server verifies the thinking blocks of later requests. */
async function thinkingModel() {
  return await scriptedModel((request, response) => {
    const refusal = refusalOf(request);
    if (refusal === undefined) {
      const { messages } = request.body;
      return answer(request, response, (messages as unknown[]).length === 1 ? FIRST : LAST);
    }
    const error = { type: 'invalid_request_error', message: refusal };
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ type: 'error', error }));
  });
}

const request = (messages: Anthropic.MessageParam[]) => ({
  model: CLAUDE,
  max_tokens: 2_048,
  thinking: { type: 'enabled' as const, budget_tokens: 1_024 },
  tools: [{ name: 'shell', input_schema: { type: 'object' as const } }],
  messages,
});
const PROMPT: Anthropic.MessageParam = { role: 'user', content: 'Clean up.' };

/** Asks with the unmodified SDK. */
const ASKS = {
  streamed: (client: Anthropic, messages: Anthropic.MessageParam[]) =>
    client.messages.stream(request(messages)).finalMessage(),
  'not streamed': (client: Anthropic, messages: Anthropic.MessageParam[]) =>
    client.messages.create({ ...request(messages), stream: false }),
};

describe('a client of Anthropic with thinking enabled', () => {
  it.each(Object.entries(ASKS))(
    'gets the recorded thinking with a call approved after its request, and continues: %s (AP-2, AP-4, AP-5)',
    async (_, ask) => {
      const model = await thinkingModel();
      const test = await reviewedPlatform(model);
      const run = await startExternalRun(test, { agent: 'hasty-bot' });
      const client = run.anthropic.withOptions({ maxRetries: 0 });
      await expect(ask(client, [PROMPT])).rejects.toThrow(/waits for approval/);
      const { approvalId } = await pendingApproval(test, run.runId);
      await approveEdited(test, approvalId, { command: 'rm -rf build/tmp' });
      const { content } = await ask(client, [PROMPT]);
      const edited = { ...CALL, input: { command: 'rm -rf build/tmp' } };
      expect(content).toEqual([...FIRST.slice(0, 3), edited]);
      // The repeated request was answered from the record.
      expect(model.requests).toHaveLength(1);
      const result = { type: 'tool_result', tool_use_id: CALL.id, content: 'ok' } as const;
      const next = await ask(client, [
        PROMPT,
        { role: 'assistant', content },
        { role: 'user', content: [result] },
      ]);
      expect(next.content).toEqual(LAST);
      expect(model.requests).toHaveLength(2);
    },
  );
});
