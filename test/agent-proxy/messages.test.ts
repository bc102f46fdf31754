import Anthropic from '@anthropic-ai/sdk';
import type { TestPlatform } from '@writ/testing/platform';
import { expect, it } from 'vitest';
import {
  ALIAS,
  CLAUDE,
  PROVIDER_KEY,
  proxyPlatform,
  startExternalRun,
  stopReasonOf,
} from './external-run.ts';
import { answerText, event, scriptedModel } from './scripted-model.ts';

const HELLO: Anthropic.MessageParam[] = [{ role: 'user', content: 'Hello.' }];
const ASKED = { model: CLAUDE, max_tokens: 50, messages: HELLO };
const totalsOf = async ({ client }: TestPlatform, runId: string) =>
  (await client.usage.getRunUsage({ runId })).tab?.totals;
const turns = (maxTurns: bigint) => ({
  runBudget: { $typeName: 'writ.supervision.v1.ExecutionBudget' as const, maxTurns },
});

it('meters an unmodified client of Anthropic, with the prices of cache writes (AP-2, EM-4)', async () => {
  const model = await scriptedModel((request, response) => answerText(request, response, 'Hi.'));
  const test = await proxyPlatform(model);
  const { runId, anthropic, token } = await startExternalRun(test);
  const { data, response } = await anthropic.beta.messages
    .create({
      ...ASKED,
      system: [
        { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '1h' } },
      ],
      metadata: { user_id: 'u_1' },
      betas: ['context-1m-2025-08-07'],
    })
    .withResponse();
  expect(data).toMatchObject({ id: 'msg_1', content: [{ text: 'Hi.' }], stop_reason: 'end_turn' });
  // USD per million tokens: 10 input at 10, 8 cache reads at 1, 8 cache writes at 12.5, 4 one-hour cache writes at 20,
  // 5 output at 100.
  expect(response.headers.get('x-writ-cost-usd')).toBe('0.000788');
  expect(response.headers.get('request-id')).toBe(response.headers.get('x-writ-call-id'));
  const [asked] = model.requests;
  expect(asked?.path).toBe('/messages');
  expect(asked?.headers).toMatchObject({
    'x-api-key': PROVIDER_KEY,
    // The version that the SDK sends, not the default for clients without this header.
    'anthropic-version': '2026-10-21',
    'anthropic-beta': 'context-1m-2025-08-07',
  });
  expect(asked?.headers.authorization).toBeUndefined();
  expect(asked?.body).toMatchObject({
    model: 'claude-opus-4-1',
    max_tokens: 50,
    metadata: { user_id: 'u_1' },
    system: [{ cache_control: { ttl: '1h' } }],
  });
  expect(JSON.stringify(model.requests)).not.toContain(token);
  const totals = await totalsOf(test, runId);
  expect(totals?.usage).toMatchObject({
    inputTokens: 30n,
    cachedInputTokens: 8n,
    cacheWriteInputTokens: 12n,
    outputTokens: 5n,
  });
  expect(totals?.costNanoUsd).toBe(788_000n);
});

it('streams the events of Anthropic, and reads their usage (AP-2, EM-8)', async () => {
  const model = await scriptedModel((request, response) =>
    answerText(request, response, 'One two three.'),
  );
  const test = await proxyPlatform(model);
  const { runId, anthropic } = await startExternalRun(test);
  const stream = anthropic.messages.stream(ASKED);
  const types: string[] = [];
  stream.on('streamEvent', ({ type }) => types.push(type));
  const message = await stream.finalMessage();
  expect(message).toMatchObject({
    content: [{ text: 'One two three.' }],
    usage: { output_tokens: 5 },
  });
  expect(types.at(0)).toBe('message_start');
  expect(types.at(-1)).toBe('message_stop');
  const totals = await totalsOf(test, runId);
  expect(totals?.usage).toMatchObject({ cacheWriteInputTokens: 12n, outputTokens: 5n });
  expect(totals?.costNanoUsd).toBe(788_000n);
});

it('bills the prompt that the provider reported when its stream breaks (AP-2, EM-8)', async () => {
  const model = await scriptedModel((_, response) => {
    response.setHeader('content-type', 'text/event-stream');
    const usage = { input_tokens: 1, cache_creation_input_tokens: 20, output_tokens: 1 };
    const message = { id: 'msg_1', type: 'message', role: 'assistant', content: [], usage };
    response.write(event({ type: 'message_start', message }));
    response.write(event({ type: 'error', error: { type: 'api_error', message: 'Broken.' } }));
    response.end();
  });
  const test = await proxyPlatform(model);
  const { runId, anthropic } = await startExternalRun(test);
  const failed = anthropic.messages.stream(ASKED).finalMessage();
  await expect(failed).rejects.toThrow(/ended its answer with an error/);
  const totals = await totalsOf(test, runId);
  expect(totals?.usage).toMatchObject({ inputTokens: 21n, cacheWriteInputTokens: 20n });
  expect(totals?.estimatedTurns).toBe(1n);
});

it('logs an answer that fails after its stream has begun, but not a client disconnect (AP-2, SYS-3)', async () => {
  const released = Promise.withResolvers<void>();
  let asked = 0;
  const model = await scriptedModel(async (_, response) => {
    asked += 1;
    response.setHeader('content-type', 'text/event-stream');
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: 'msg_1', type: 'message', role: 'assistant', content: [], usage };
    response.write(event({ type: 'message_start', message }));
    if (asked === 1) await released.promise;
    response.end(event({ type: 'error', error: { type: 'api_error', message: 'Broken.' } }));
  });
  const lines: string[] = [];
  const test = await proxyPlatform(model, {}, (line) => lines.push(line));
  const { anthropic } = await startExternalRun(test);
  const left = anthropic.messages.stream(ASKED);
  left.once('streamEvent', () => left.abort());
  await expect(left.finalMessage()).rejects.toThrow(/abort/i);
  const failed = anthropic.messages.stream({ ...ASKED, max_tokens: 49 }).finalMessage();
  await expect(failed).rejects.toThrow(/ended its answer with an error/);
  released.resolve();
  const failures = lines.filter((line) => line.includes('request of an external agent failed'));
  expect(failures.map((line) => JSON.parse(line))).toMatchObject([
    { service: 'agent-proxy', err: { reason: 'PROVIDER_ERROR' } },
  ]);
});

it('returns errors in the format of Anthropic, which the SDK does not retry (AP-2, EM-2)', async () => {
  const model = await scriptedModel((request, response) => answerText(request, response, 'Hm.'));
  const test = await proxyPlatform(model);
  const { runId, anthropic } = await startExternalRun(test, turns(1n));
  const seen: number[] = [];
  const counting = anthropic.withOptions({
    fetch: async (url, init) => {
      const answer = await fetch(url, init);
      seen.push(answer.status);
      return answer;
    },
  });
  const ask = (more: object) => counting.messages.create({ ...ASKED, ...more });
  const invalid = { status: 400, type: 'invalid_request_error' };
  await expect(ask({ model: ALIAS })).rejects.toMatchObject(invalid);
  const search = { type: 'web_search_20250305', name: 'web_search' };
  await expect(ask({ tools: [search] })).rejects.toMatchObject({
    ...invalid,
    error: { error: { code: 'hosted_tool_not_allowed' } },
  });
  for (const unbounded of [
    { mcp_servers: [{ type: 'url', url: 'https://mcp.example', name: 'm' }] },
    { speed: 'fast' },
    {
      messages: [
        {
          role: 'user',
          content: [{ type: 'document', source: { type: 'url', url: 'https://x.example' } }],
        },
      ],
    },
  ]) {
    await expect(ask(unbounded)).rejects.toMatchObject(invalid);
  }
  await ask({
    tools: [
      { type: 'bash_20250124', name: 'bash' },
      { name: 'own', input_schema: {} },
    ],
  });
  await expect(ask({ max_tokens: 51 })).rejects.toMatchObject({
    status: 402,
    type: 'billing_error',
    error: { type: 'error', error: { code: 'budget_exhausted' } },
  });
  expect(seen).toEqual([400, 400, 400, 400, 400, 200, 402]);
  expect(model.requests).toHaveLength(1);
  expect(await stopReasonOf(test, runId)).toBe('budget_exhausted:turns');
  await expect(ask({ max_tokens: 52 })).rejects.toMatchObject({
    status: 403,
    type: 'permission_error',
  });
  await expect(
    new Anthropic({ baseURL: anthropic.baseURL, apiKey: 'writ_run_wrong' }).messages.create(ASKED),
  ).rejects.toMatchObject({ status: 401, type: 'authentication_error' });
});

it('answers a repeated message from the record, in the format of Anthropic (AP-2, EM-7)', async () => {
  const model = await scriptedModel((request, response) =>
    answerText(request, response, 'One two.'),
  );
  const test = await proxyPlatform(model);
  const { anthropic } = await startExternalRun(test);
  const again = { headers: { 'Idempotency-Key': 'k_1' } };
  const stream = () => anthropic.messages.stream({ ...ASKED }, again);
  const first = await stream().finalMessage();
  const repeat = stream();
  const message = await repeat.finalMessage();
  expect(message).toMatchObject({ id: first.id, content: [{ type: 'text', text: 'One two.' }] });
  expect(message.usage).toMatchObject({ cache_creation_input_tokens: 12, output_tokens: 5 });
  expect(repeat.response?.headers.get('x-writ-replayed')).toBe('true');
  expect(model.requests).toHaveLength(1);
});

it('lists models and counts tokens for a client of Anthropic, without a charge (AP-2)', async () => {
  const model = await scriptedModel((request, response) => {
    expect(request.path).toBe('/messages/count_tokens');
    response.setHeader('content-type', 'application/json');
    response.end('{"input_tokens":14}');
  });
  const test = await proxyPlatform(model);
  const { runId, anthropic } = await startExternalRun(test);
  const list = await anthropic.models.list();
  expect(list.data.map(({ type, id }) => [type, id])).toEqual([
    ['model', ALIAS],
    ['model', CLAUDE],
  ]);
  const counted = await anthropic.messages.countTokens({ model: CLAUDE, messages: HELLO });
  expect(counted).toEqual({ input_tokens: 14 });
  expect(model.requests[0]?.headers['x-api-key']).toBe(PROVIDER_KEY);
  expect(model.requests[0]?.body.model).toBe('claude-opus-4-1');
  expect((await totalsOf(test, runId))?.turns).toBe(0n);
});
