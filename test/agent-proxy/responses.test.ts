import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import type OpenAI from 'openai';
import { expect, it } from 'vitest';
import { ALIAS, proxyPlatform, startExternalRun } from './external-run.ts';
import { answerText, event, scriptedModel } from './scripted-model.ts';

const UNKNOWN: OpenAI.Responses.ResponseInputItem = {
  type: 'reasoning',
  id: 'rs_unknown',
  summary: [],
};
const ASKED = { model: ALIAS, input: 'Hello.' };

it('meters responses of an unmodified client, streamed or not (AP-2, EM-8)', async () => {
  const model = await scriptedModel((request, response) =>
    answerText(request, response, 'One two.'),
  );
  const test = await proxyPlatform(model);
  const { runId, openai, token } = await startExternalRun(test);
  const { data, response } = await openai.responses
    .create({ ...ASKED, max_output_tokens: 40, reasoning: { effort: 'low' }, store: true })
    .withResponse();
  expect(data).toMatchObject({ output_text: 'One two.', usage: { total_tokens: 35 } });
  expect(response.headers.get('x-writ-cost-usd')).toBe('0.0008');
  expect(model.requests[0]).toMatchObject({
    path: '/responses',
    body: {
      model: 'gpt-4.1-mini',
      input: 'Hello.',
      max_output_tokens: 40,
      reasoning: { effort: 'low' },
      store: true,
    },
  });
  expect(JSON.stringify(model.requests)).not.toContain(token);
  const stream = openai.responses.stream(ASKED);
  const types: string[] = [];
  for await (const { type } of stream) types.push(type);
  expect(types.at(0)).toBe('response.created');
  expect(types.at(-1)).toBe('response.completed');
  expect((await stream.finalResponse()).output_text).toBe('One two.');
  const { tab } = await test.client.usage.getRunUsage({ runId });
  expect(tab?.totals).toMatchObject({
    turns: 2n,
    costNanoUsd: 1_600_000n,
    usage: { inputTokens: 60n, cachedInputTokens: 20n, outputTokens: 10n, reasoningTokens: 4n },
  });
});

it('accepts references only to responses of the same session, and reserves their tokens (AP-2, EM-3)', async () => {
  const model = await scriptedModel((request, response) => {
    const usage = { input_tokens: 5_000, output_tokens: 50 };
    const output = [{ type: 'message', id: `msg_${model.requests.length}`, content: [] }];
    const done = { id: `resp_${model.requests.length}`, object: 'response', output, usage };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ ...done, status: 'completed', model: request.body.model }));
  });
  const test = await proxyPlatform(model);
  const { openai } = await startExternalRun(test, {
    runBudget: { $typeName: 'writ.supervision.v1.ExecutionBudget', maxTokens: 20_000n },
  });
  const other = await startExternalRun(test);
  const prompt = 'x'.repeat(6_000);
  const first = await openai.responses.create({ ...ASKED, input: prompt });
  const item = { type: 'item_reference', id: first.output[0]?.id ?? '' } as const;
  const next = { ...ASKED, input: [item, { role: 'user', content: 'More.' }] } as const;
  // A usage of 5,000 input tokens is plausible only with the tokens of the previous response; otherwise the meter would
  // estimate the usage.
  const previous = { ...ASKED, previous_response_id: first.id };
  expect((await openai.responses.create(previous)).usage).toMatchObject({ input_tokens: 5_000 });
  expect(model.requests.at(-1)?.body.previous_response_id).toBe(first.id);
  const notFound = { status: 404, code: 'response_not_found' };
  for (const foreign of [
    { ...previous, model: ALIAS },
    { ...next, input: [...next.input] },
    { ...ASKED, previous_response_id: 'resp_unknown' },
    { ...ASKED, input: [UNKNOWN] },
  ]) {
    await expect(other.openai.responses.create(foreign)).rejects.toMatchObject(notFound);
  }
  expect(model.requests).toHaveLength(2);
  // The third request leaves too few tokens for the fourth, which refers to the first response.
  const third = openai.responses.create({
    ...next,
    input: [...next.input],
    previous_response_id: first.id,
  });
  await third;
  const fourth = openai.responses.create(previous);
  await expect(fourth).rejects.toMatchObject({ status: 402, code: 'budget_exhausted' });
  expect(model.requests).toHaveLength(3);
});

it('removes the ids that a client such as Codex gives to its own messages and results (AP-2, SYS-6)', async () => {
  const model = await scriptedModel((request, response) => answerText(request, response, 'One.'));
  const { openai } = await startExternalRun(await proxyPlatform(model));
  const content = [{ type: 'input_text' as const, text: 'Count.' }];
  const message = { type: 'message' as const, role: 'user' as const, content };
  const result = { type: 'function_call_output' as const, call_id: 'call_1', output: 'Done.' };
  const ids = { id: 'msg_of_the_client' };
  const input = [
    { ...message, ...ids },
    { ...result, id: 'fco_of_the_client' },
  ];
  expect((await openai.responses.create({ ...ASKED, input })).output_text).toBe('One.');
  expect(model.requests[0]?.body.input).toEqual([message, result]);
  // An item without content, or an item of an answer, is a reference to an item stored by the provider.
  const answer = { ...ids, type: 'message', role: 'assistant', status: 'completed', content: [] };
  for (const item of [ids, answer, { ...ids, type: 'message', role: 'user' }]) {
    const refused = openai.responses.create({ ...ASKED, input: [item] as never });
    await expect(refused).rejects.toMatchObject({ status: 404, code: 'response_not_found' });
  }
  expect(model.requests).toHaveLength(1);
});

it('serves requests for a stored response only to its session, without a charge (AP-2, SYS-6)', async () => {
  const model = await scriptedModel((request, response) => {
    const { method, path } = request;
    if (path === '/responses') return answerText(request, response, 'One two.');
    response.setHeader('content-type', 'application/json');
    if (path.endsWith('/cancel')) response.statusCode = 400;
    const [, , id = ''] = path.split('/');
    const list = { object: 'list', data: [{ id: 'msg_in', type: 'message' }], has_more: false };
    const whole = { id, object: 'response', status: 'completed', output: [] };
    const deleted = { id, object: 'response.deleted', deleted: true };
    const read = path.includes('/input_items') ? list : whole;
    response.end(JSON.stringify(method === 'DELETE' ? deleted : read));
  });
  const test = await proxyPlatform(model);
  const { runId, openai, baseUrl, token } = await startExternalRun(test);
  const other = await startExternalRun(test);
  const { id } = await openai.responses.create(ASKED);
  expect(await openai.responses.retrieve(id)).toMatchObject({ id, status: 'completed' });
  const items = await openai.responses.inputItems.list(id, { limit: 2, order: 'asc' });
  expect(items.data).toMatchObject([{ id: 'msg_in' }]);
  await expect(openai.responses.cancel(id)).rejects.toMatchObject({ code: 'provider_error' });
  expect(model.requests.slice(1).map(({ method, path }) => `${method} ${path}`)).toEqual([
    `GET /responses/${id}`,
    `GET /responses/${id}/input_items?limit=2&order=asc`,
    `POST /responses/${id}/cancel`,
  ]);
  const streamed = await fetch(`${baseUrl}/responses/${id}?stream=true`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(streamed.status).toBe(400);
  const notFound = { status: 404, code: 'response_not_found' };
  await expect(other.openai.responses.retrieve(id)).rejects.toMatchObject(notFound);
  await expect(other.openai.responses.delete(id)).rejects.toMatchObject(notFound);
  await expect(openai.responses.retrieve('resp_unknown')).rejects.toMatchObject(notFound);
  expect(model.requests).toHaveLength(4);
  await openai.responses.delete(id);
  expect(model.requests).toHaveLength(5);
  await expect(openai.responses.retrieve(id)).rejects.toMatchObject(notFound);
  const later = openai.responses.create({ ...ASKED, previous_response_id: id });
  await expect(later).rejects.toMatchObject(notFound);
  expect(model.requests).toHaveLength(5);
  expect(JSON.stringify(model.requests)).not.toContain(token);
  const { tab } = await test.client.usage.getRunUsage({ runId });
  expect(tab?.totals).toMatchObject({ turns: 1n, costNanoUsd: 800_000n });
});

it('lets agents with reviewed answers delete stored responses, but not read or cancel them (AP-2, AP-5)', async () => {
  const model = await scriptedModel((request, response) => {
    if (request.method === 'POST') return answerText(request, response, 'One two.');
    response.setHeader('content-type', 'application/json');
    response.end('{"object":"response.deleted","deleted":true}');
  });
  const test = await proxyPlatform(model);
  const { openai } = await startExternalRun(test, { agent: 'reviewed-bot' });
  const { id } = await openai.responses.create(ASKED);
  const refused = { status: 404, code: 'unsupported_endpoint' };
  await expect(openai.responses.retrieve(id)).rejects.toMatchObject(refused);
  await expect(openai.responses.inputItems.list(id)).rejects.toMatchObject(refused);
  await expect(openai.responses.cancel(id)).rejects.toMatchObject(refused);
  expect(model.requests).toHaveLength(1);
  await openai.responses.delete(id);
  expect(model.requests.map(({ method }) => method)).toEqual(['POST', 'DELETE']);
});

it('refuses requests with unmetered or unreviewed features (AP-2)', async () => {
  const model = await scriptedModel((request, response) => answerText(request, response, 'Hm.'));
  const test = await proxyPlatform(model);
  const { openai } = await startExternalRun(test);
  const codeOf = async (more: object) =>
    await openai.responses.create({ ...ASKED, ...more }).then(
      () => undefined,
      ({ status, code }: { status: number; code: string }) => `${status} ${code}`,
    );
  const field = '400 native_field_not_allowed';
  const hosted = '400 hosted_tool_not_allowed';
  const file = { type: 'input_file', file_id: 'file_1' };
  expect({
    background: await codeOf({ background: true }),
    tier: await codeOf({ service_tier: 'priority' }),
    conversation: await codeOf({ conversation: 'conv_1' }),
    prompt: await codeOf({ prompt: { id: 'pmpt_1' } }),
    file: await codeOf({ input: [{ role: 'user', content: [file] }] }),
    search: await codeOf({ tools: [{ type: 'web_search' }] }),
    mcp: await codeOf({
      tools: [{ type: 'mcp', server_label: 'm', server_url: 'https://m.example' }],
    }),
    code: await codeOf({ tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] }),
    shell: await codeOf({ tools: [{ type: 'shell', environment: { type: 'container_auto' } }] }),
    nested: await codeOf({
      tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'web_search' }] }],
    }),
  }).toEqual({
    background: field,
    tier: field,
    conversation: field,
    prompt: field,
    file: field,
    search: hosted,
    mcp: hosted,
    code: hosted,
    shell: hosted,
    nested: hosted,
  });
  expect(model.requests).toEqual([]);
  const own = { type: 'function', name: 'own', parameters: {}, strict: false };
  expect(await codeOf({ tools: [own, { type: 'custom', name: 'free' }] })).toBeUndefined();
});

it('sends store=false to the provider for a run without retention (AP-2, SUP-4)', async () => {
  const model = await scriptedModel((request, response) => answerText(request, response, 'Hm.'));
  const test = await proxyPlatform(model);
  const { openai } = await startExternalRun(test, { retention: HistoryRetention.NONE });
  await openai.responses.create({ ...ASKED, store: true });
  expect(model.requests[0]?.body.store).toBe(false);
});

it('answers a repeated request from the record, and accepts its ids in later requests (AP-2, EM-7)', async () => {
  const model = await scriptedModel((request, response) =>
    answerText(request, response, 'One two.'),
  );
  const test = await proxyPlatform(model);
  const { openai } = await startExternalRun(test);
  const again = { headers: { 'Idempotency-Key': 'k_1' } };
  const first = await openai.responses.stream(ASKED, again).finalResponse();
  const repeat = await openai.responses.stream(ASKED, again).finalResponse();
  expect(repeat).toMatchObject({ id: first.id, output_text: 'One two.' });
  expect(model.requests).toHaveLength(1);
  await openai.responses.create({
    ...ASKED,
    input: [
      ...(repeat.output as OpenAI.Responses.ResponseInputItem[]),
      { role: 'user', content: 'So?' },
    ],
  });
  const [item] = (model.requests[1]?.body.input ?? []) as { readonly id?: string }[];
  expect(item).toMatchObject({ role: 'assistant', content: [{ text: 'One two.' }] });
  expect(item?.id).toBeUndefined();
});

it('sends response.failed when a response fails midway, and the SDK does not retry the request (AP-2)', async () => {
  const model = await scriptedModel((_, response) => {
    response.setHeader('content-type', 'text/event-stream');
    const started = { id: 'resp_x', object: 'response', status: 'in_progress', output: [] };
    response.write(event({ type: 'response.created', response: started }));
    const error = { code: 'server_error', message: 'Broken, with the prompt: secret.' };
    response.end(
      event({ type: 'response.failed', response: { ...started, status: 'failed', error } }),
    );
  });
  const test = await proxyPlatform(model);
  const { openai } = await startExternalRun(test);
  const stream = await openai.responses.create({ ...ASKED, stream: true });
  const events = await Array.fromAsync(stream);
  expect(events.at(-1)).toMatchObject({ type: 'response.failed', response: { status: 'failed' } });
  expect(JSON.stringify(events)).not.toContain('secret');
  expect(model.requests).toHaveLength(1);
});
