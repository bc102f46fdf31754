import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { newId } from '@writ/kernel';
import { expect, it } from 'vitest';
import { ALIAS, CLAUDE, proxyPlatform, startExternalRun, stopReasonOf } from './external-run.ts';
import { answerText, scriptedModel } from './scripted-model.ts';

const HELLO = [{ role: 'user', content: 'Hello.' }] as const;

it('meters an unmodified client for which only base URL and key are set (AP-1, AP-2, EM-8)', async () => {
  const model = await scriptedModel((request, response) =>
    answerText(request, response, 'Good day.'),
  );
  const test = await proxyPlatform(model);
  const { runId, token, openai } = await startExternalRun(test);
  expect(token).toMatch(/^writ_run_/);
  expect((await openai.models.list()).data.map(({ id }) => id)).toEqual([ALIAS, CLAUDE]);
  const { data, response, request_id } = await openai.chat.completions
    .create({ model: ALIAS, messages: [...HELLO], max_completion_tokens: 20, seed: 7, user: 'u_1' })
    .withResponse();
  expect(data).toMatchObject({
    system_fingerprint: 'fp_1',
    choices: [{ message: { content: 'Good day.', annotations: [] }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 30, completion_tokens: 5 },
  });
  expect(response.headers.get('x-writ-run-id')).toBe(runId);
  expect(response.headers.get('x-writ-cost-usd')).toBe('0.0008');
  expect(request_id).toBe(response.headers.get('x-writ-call-id'));
  // The provider receives every field except the alias unchanged, and never receives the token.
  expect(model.requests[0]?.body).toEqual({
    model: 'gpt-4.1-mini',
    messages: [...HELLO],
    max_completion_tokens: 20,
    seed: 7,
    user: 'u_1',
    stream: false,
  });
  expect(JSON.stringify(model.requests)).not.toContain('writ_run_');
  const { run } = await test.client.runs.closeRun({ requestId: newId('req'), runId });
  expect(run?.runId).toBe(runId);
  expect(await stopReasonOf(test, runId)).toBe('closed');
  const ended = (await test.client.runs.getRun({ runId })).run;
  expect(ended?.state).toBe(RunState.COMPLETED);
  expect(ended?.result?.usage?.turns).toBe(1n);
  await expect(
    openai.chat.completions.create({ model: ALIAS, messages: [...HELLO] }),
  ).rejects.toMatchObject({
    status: 403,
    code: 'run_ended',
  });
  expect(model.requests).toHaveLength(1);
});

it('streams the events of the provider, with usage only when requested (AP-2)', async () => {
  const model = await scriptedModel((request, response) =>
    answerText(request, response, 'One two three.'),
  );
  const test = await proxyPlatform(model);
  const { openai } = await startExternalRun(test);
  const textOf = async (include_usage?: boolean) => {
    const stream = await openai.chat.completions.create({
      model: ALIAS,
      messages: [...HELLO],
      stream: true,
      ...(include_usage !== undefined && { stream_options: { include_usage } }),
    });
    let text = '';
    let usage: unknown;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    return { text, usage };
  };
  expect(await textOf()).toEqual({ text: 'One two three.', usage: undefined });
  expect(await textOf(true)).toMatchObject({ text: 'One two three.', usage: { total_tokens: 35 } });
  for (const { body } of model.requests)
    expect(body.stream_options).toEqual({ include_usage: true });
});

it('refuses the first request above the cap, which the SDK does not retry, and ends the run (AP-2, EM-2)', async () => {
  const model = await scriptedModel((request, response) => answerText(request, response, 'Hm.'));
  const test = await proxyPlatform(model);
  const { runId, openai } = await startExternalRun(test, {
    runBudget: { $typeName: 'writ.supervision.v1.ExecutionBudget', maxTurns: 2n },
  });
  const refused: unknown[] = [];
  const seen: number[] = [];
  const counting = openai.withOptions({
    fetch: async (url, init) => {
      const answer = await fetch(url, init);
      seen.push(answer.status);
      return answer;
    },
  });
  for (let step = 0; step < 3; step += 1) {
    const messages = [{ role: 'user', content: `Step ${step}.` }] as const;
    await counting.chat.completions
      .create({ model: ALIAS, messages: [...messages] })
      .catch((error: unknown) => refused.push(error));
  }
  expect(seen).toEqual([200, 200, 402]);
  expect(refused).toMatchObject([
    { status: 402, code: 'budget_exhausted', type: 'insufficient_quota', param: 'turns' },
  ]);
  expect(model.requests).toHaveLength(2);
  expect(await stopReasonOf(test, runId)).toBe('budget_exhausted:turns');
});

it.each<[string, object, object, string]>([
  [
    'a custom tool',
    { tools: [{ type: 'custom', custom: { name: 'shell' } }] },
    { tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'shell', input: 'ls -l' } }] },
    'tool_calls',
  ],
  [
    'a deprecated function',
    { functions: [{ name: 'look_up', parameters: { type: 'object' } }] },
    { function_call: { name: 'look_up', arguments: '{"id":"7"}' } },
    'function_call',
  ],
])(
  'answers a repeated request from the record with the call of %s (AP-2, EM-7)',
  async (_, fields, called, finish) => {
    const message = { role: 'assistant', content: null, ...called };
    const usage = { prompt_tokens: 30, completion_tokens: 5, total_tokens: 35 };
    const model = await scriptedModel((_request, response) => {
      const choices = [{ index: 0, message, finish_reason: finish }];
      const envelope = { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm' };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ ...envelope, choices, usage }));
    });
    const test = await proxyPlatform(model);
    const { openai } = await startExternalRun(test);
    const body = { model: ALIAS, messages: [...HELLO], ...fields };
    const ask = async () => {
      const { data, response } = await openai.chat.completions
        .create(body, { headers: { 'Idempotency-Key': 'k_1' } })
        .withResponse();
      const [choice] = data.choices;
      return { replayed: response.headers.get('x-writ-replayed'), choice };
    };
    const choice = { message, finish_reason: finish };
    expect(await ask()).toMatchObject({ replayed: null, choice });
    expect(await ask()).toMatchObject({ replayed: 'true', choice });
    expect(model.requests).toHaveLength(1);
  },
);
