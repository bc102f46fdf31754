import { createServer } from 'node:http';
import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { createModelSimulator, type ModelSimulator, type Reply, type Script } from './index.ts';

const open: ModelSimulator[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((simulator) => simulator.close()));
});

async function start(...scripts: Script[]): Promise<ModelSimulator> {
  const simulator = await createModelSimulator({ scripts });
  open.push(simulator);
  return simulator;
}

async function startWith(reply: Reply): Promise<{ simulator: ModelSimulator; client: OpenAI }> {
  const simulator = await start({ name: 'one', entries: [{ reply }] });
  return { simulator, client: clientOf(simulator) };
}

function clientOf(simulator: ModelSimulator): OpenAI {
  return new OpenAI({ baseURL: simulator.url, apiKey: 'any', maxRetries: 0 });
}

const HELLO = {
  model: 'sim:one',
  messages: [{ role: 'user', content: 'Hello there' }],
} satisfies OpenAI.ChatCompletionCreateParams;

const STREAM = { ...HELLO, stream: true, stream_options: { include_usage: true } } as const;

async function drain(stream: AsyncIterable<OpenAI.ChatCompletionChunk>) {
  const chunks: OpenAI.ChatCompletionChunk[] = [];
  let failure: unknown;
  try {
    for await (const chunk of stream) chunks.push(chunk);
  } catch (error) {
    failure = error;
  }
  const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');
  const finish = chunks.map((chunk) => chunk.choices[0]?.finish_reason).find(Boolean);
  const usage = chunks.map((chunk) => chunk.usage).find(Boolean);
  return { chunks, failure, text, finish, usage };
}

describe('a non-streamed answer', () => {
  it('has text, finish reason and usage (EM-8)', async () => {
    const { client, simulator } = await startWith({ text: 'Good day to you.' });
    const answer = await client.chat.completions.create({
      ...HELLO,
      temperature: 0,
      response_format: { type: 'json_object' },
    });
    expect(answer.choices).toMatchObject([
      { message: { role: 'assistant', content: 'Good day to you.' }, finish_reason: 'stop' },
    ]);
    expect(answer.model).toBe('sim:one');
    expect(answer.usage).toMatchObject({ completion_tokens: 4, total_tokens: expect.any(Number) });
    const again = await client.chat.completions.create(HELLO);
    expect(again.usage?.prompt_tokens).toBe(answer.usage?.prompt_tokens);
    expect(again.id).toBe(answer.id);
    expect(simulator.requests()).toMatchObject([
      { call: 1, script: 'one', entry: 0, outcome: 'answered', stream: false },
      { call: 2, outcome: 'answered' },
    ]);
  });

  it('has tool calls, even with arguments that are not JSON (SV-2)', async () => {
    const { client } = await startWith({
      tool_calls: [
        { name: 'issue_refund', arguments: { user_id: 42 } },
        { name: 'broken', arguments: '{"user_id":', id: 'call_mine' },
      ],
    });
    const answer = await client.chat.completions.create(HELLO);
    expect(answer.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: {
        content: null,
        tool_calls: [
          { id: expect.stringMatching(/^call_/), function: { arguments: '{"user_id":42}' } },
          { id: 'call_mine', function: { name: 'broken', arguments: '{"user_id":' } },
        ],
      },
    });
  });

  it('reports the scripted usage, including cached tokens (EM-10)', async () => {
    const { client } = await startWith({
      text: 'x',
      usage: { prompt_tokens: 100, completion_tokens: 7, cached_tokens: 60, reasoning_tokens: 3 },
    });
    const { usage } = await client.chat.completions.create(HELLO);
    expect(usage).toEqual({
      prompt_tokens: 100,
      completion_tokens: 7,
      total_tokens: 107,
      prompt_tokens_details: { cached_tokens: 60 },
      completion_tokens_details: { reasoning_tokens: 3 },
    });
  });

  it('may be empty or lack its usage (EM-8)', async () => {
    const { client } = await startWith({ text: '', omit: ['usage'] });
    const answer = await client.chat.completions.create(HELLO);
    expect(answer.choices[0]).toMatchObject({ message: { content: '' }, finish_reason: 'stop' });
    expect(answer.usage).toBeUndefined();
  });

  it('is truncated at the token limit of the request (AG-6)', async () => {
    const { client } = await startWith({ text: 'abcdefghijklmnop' });
    const answer = await client.chat.completions.create({ ...HELLO, max_completion_tokens: 2 });
    expect(answer.choices[0]).toMatchObject({
      message: { content: 'abcdefgh' },
      finish_reason: 'length',
    });
  });

  it('may be truncated, cut off or not JSON (EM-8)', async () => {
    const length = await startWith({ text: 'half', finish_reason: 'length' });
    const answer = await length.client.chat.completions.create(HELLO);
    expect(answer.choices[0]?.finish_reason).toBe('length');
    const torn = await startWith({ text: 'x'.repeat(500), cut_after_chunks: 0 });
    await expect(torn.client.chat.completions.create(HELLO)).rejects.toThrow();
    expect(torn.simulator.requests()[0]?.outcome).toBe('cut');
    const garbage = await startWith({ garbage: '<html>502</html>' });
    await expect(garbage.client.chat.completions.create(HELLO)).rejects.toThrow();
  });
});

describe('a streamed answer', () => {
  it('arrives in chunks, with usage in the last one (EM-8)', async () => {
    const { client } = await startWith({ text: 'Grüße, 👋 dear customer', chunk_size: 5 });
    const { chunks, ...rest } = await drain(await client.chat.completions.create(STREAM));
    expect(rest).toMatchObject({
      text: 'Grüße, 👋 dear customer',
      finish: 'stop',
      usage: { completion_tokens: 6 },
      failure: undefined,
    });
    expect(chunks).toHaveLength(1 + 5 + 1 + 1);
    expect(chunks.at(-1)).toMatchObject({ choices: [] });
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
  });

  it('has no usage unless the request includes it (EM-8)', async () => {
    const { client } = await startWith({ text: 'x' });
    const stream = await client.chat.completions.create({ ...HELLO, stream: true });
    const { chunks } = await drain(stream);
    expect(chunks.some((chunk) => 'usage' in chunk)).toBe(false);
  });

  it('splits tool calls into chunks', async () => {
    const { client } = await startWith({
      text: 'Let me see.',
      chunk_size: 4,
      tool_calls: [
        { name: 'get_refund_context', arguments: { user_id: 42 } },
        { name: 'get_refund_context', arguments: { user_id: 7 } },
      ],
    });
    const runner = client.chat.completions.stream(HELLO);
    const message = await runner.finalMessage();
    expect(message).toMatchObject({
      content: 'Let me see.',
      tool_calls: [
        { function: { name: 'get_refund_context', arguments: '{"user_id":42}' } },
        { function: { arguments: '{"user_id":7}' } },
      ],
    });
  });

  it('may be cut off, which the client reports as an error (EM-9)', async () => {
    const { client, simulator } = await startWith({
      text: 'one two three four',
      chunk_size: 4,
      cut_after_chunks: 2,
    });
    const result = await drain(await client.chat.completions.create(STREAM));
    expect(result).toMatchObject({ text: 'one two ', finish: undefined, usage: undefined });
    expect(result.failure).toBeInstanceOf(Error);
    expect(simulator.requests()[0]?.outcome).toBe('cut');
  });

  it('may end without finish reason, usage and [DONE] (EM-9)', async () => {
    const { client } = await startWith({
      text: 'half',
      omit: ['finish_reason', 'usage', 'done'],
    });
    const result = await drain(await client.chat.completions.create(STREAM));
    expect(result).toMatchObject({ text: 'half', finish: undefined, usage: undefined });
    expect(result.failure).toBeUndefined();
  });

  it('may contain garbage (EM-9)', async () => {
    const { client } = await startWith({ text: 'half', garbage: 'data: {"choices": [\n\n' });
    const result = await drain(await client.chat.completions.create(STREAM));
    expect(result.text).toBe('half');
    expect(result.failure).toBeInstanceOf(SyntaxError);
  });
});

describe('errors', () => {
  it('have status, error body and Retry-After, and repeat as scripted (EM-8)', async () => {
    const simulator = await start({
      name: 'one',
      entries: [
        {
          times: 2,
          reply: { error: { status: 429, message: 'Slow down', code: 'rate', retry_after: 1.5 } },
        },
        { reply: { text: 'now' } },
      ],
    });
    const client = clientOf(simulator);
    for (const call of [1, 2]) {
      const error = await client.chat.completions.create(HELLO).catch((e: unknown) => e);
      expect(error).toBeInstanceOf(OpenAI.RateLimitError);
      expect(error).toMatchObject({ status: 429, code: 'rate', type: 'rate_limit_error' });
      if (!(error instanceof OpenAI.APIError)) throw error;
      expect(error.headers?.get('retry-after')).toBe('1.5');
      expect(simulator.requests()).toHaveLength(call);
    }
    const answer = await client.chat.completions.create(HELLO);
    expect(answer.choices[0]?.message.content).toBe('now');
  });

  it('include client timeouts, which the simulator records as aborted (EM-8)', async () => {
    const { client, simulator } = await startWith({ text: 'late', delay_ms: 60_000 });
    const call = client.chat.completions.create(HELLO, { timeout: 30 });
    await expect(call).rejects.toBeInstanceOf(OpenAI.APIConnectionTimeoutError);
    expect(await simulator.until(({ outcome }) => outcome === 'aborted')).toMatchObject({
      call: 1,
    });
  });

  it('include aborts during a stream, which close the connection (SUP-8)', async () => {
    const { client, simulator } = await startWith({
      text: 'word '.repeat(1000),
      chunk_delay_ms: 5,
    });
    const controller = new AbortController();
    const stream = await client.chat.completions.create(STREAM, { signal: controller.signal });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) controller.abort();
    }
    expect(await simulator.until(({ outcome }) => outcome === 'aborted')).toMatchObject({
      call: 1,
    });
  });

  it('have status 401 for a request without a key (EM-6)', async () => {
    const { simulator } = await startWith({ text: 'x' });
    const response = await fetch(`${simulator.url}/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(HELLO),
    });
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ error: { code: 'invalid_api_key' } });
    expect(simulator.requests()).toEqual([]);
  });

  it('have status 400 and the field for a malformed request, and 404 for an unknown model or path', async () => {
    const { simulator, client } = await startWith({ text: 'x' });
    const post = async (body: string, path = '/chat/completions') => {
      const response = await fetch(simulator.url + path, {
        method: 'POST',
        headers: { authorization: 'Bearer any' },
        body,
      });
      return { status: response.status, body: await response.json() };
    };
    expect(await post('{')).toMatchObject({ status: 400, body: { error: { param: 'body' } } });
    expect(await post('{}')).toMatchObject({ status: 400, body: { error: { param: 'model' } } });
    const noMessages = JSON.stringify({ model: 'a', messages: [] });
    expect(await post(noMessages)).toMatchObject({ body: { error: { param: 'messages' } } });
    const two = JSON.stringify({ ...HELLO, n: 2 });
    expect(await post(two)).toMatchObject({ status: 400, body: { error: { param: 'n' } } });
    expect(await post('{}', '/embeddings')).toMatchObject({ status: 404 });
    await expect(client.chat.completions.create({ ...HELLO, model: 'sim:other' })).rejects.toThrow(
      "The model 'sim:other' does not exist. Available models: sim:one.",
    );
  });

  it('have status 500 and describe a request that no entry matches (SYS-3)', async () => {
    const simulator = await start({
      name: 'one',
      entries: [{ when: { turn: 5 }, reply: { text: 'x' } }],
    });
    await expect(clientOf(simulator).chat.completions.create(HELLO)).rejects.toMatchObject({
      status: 500,
      code: 'simulator_no_match',
      message: expect.stringMatching(
        /script "one" has no entry for model "sim:one", turn 0, last role user, no tool result, user message "Hello there"/,
      ),
    });
    expect(simulator.requests()).toMatchObject([{ entry: null, outcome: 'failed' }]);
  });

  it('include a port in use', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    const address = taken.address();
    if (typeof address !== 'object' || address === null) throw new Error('No address.');
    const scripts: Script[] = [{ name: 'one', entries: [{ reply: { text: 'x' } }] }];
    await expect(createModelSimulator({ scripts, port: address.port })).rejects.toThrow(
      'EADDRINUSE',
    );
    taken.close();
  });
});

describe('script selection', () => {
  const say = (name: string): Script => ({ name, entries: [{ reply: { text: name } }] });

  it('uses the model name; any other model gets the default script', async () => {
    const simulator = await createModelSimulator({
      scripts: [say('one'), say('two')],
      defaultScript: 'two',
    });
    open.push(simulator);
    const client = clientOf(simulator);
    const ask = async (model: string) =>
      (await client.chat.completions.create({ ...HELLO, model })).choices[0]?.message.content;
    expect(await ask('sim:one')).toBe('one');
    expect(await ask('gpt-4.1-mini')).toBe('two');
    const models = await client.models.list();
    expect(models.data.map(({ id }) => id)).toEqual(['sim:one', 'sim:two']);
  });

  it('rejects a default script that does not exist', async () => {
    await expect(
      createModelSimulator({ scripts: [say('one')], defaultScript: 'three' }),
    ).rejects.toThrow('Default script "three" does not exist. Available scripts: one.');
  });
});
