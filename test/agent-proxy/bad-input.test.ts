import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { expect, it, onTestFinished } from 'vitest';
import { ALIAS, proxyPlatform, startExternalRun } from './external-run.ts';
import { answerText, scriptedModel } from './scripted-model.ts';

const MESSAGES = [{ role: 'user', content: 'Hello.' }];
const CHAT = { model: ALIAS, messages: MESSAGES };
const WEB = { type: 'web_search_preview' };

it('refuses unmetered, unreviewed and malformed requests in the error format of OpenAI, before a request to the model (AP-2, SYS-4)', async () => {
  const model = await scriptedModel((request, response) => answerText(request, response, 'Hm.'));
  const test = await proxyPlatform(model);
  const { baseUrl, token } = await startExternalRun(test);
  const other = await startExternalRun(test);
  const post = async (
    body: unknown,
    {
      path = '/chat/completions',
      key = token,
      headers = {},
    }: { path?: string; key?: string; headers?: Record<string, string> } = {},
  ) => {
    const answer = await fetch(`${baseUrl}${path}`, {
      method: 'POST',
      headers: {
        ...(key === '' ? {} : { authorization: `Bearer ${key}` }),
        'content-type': 'application/json',
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    const { error } = (await answer.json()) as { error: { code: string; message: string } };
    expect(error.message).toMatch(/\.$/);
    return [answer.status, error.code];
  };
  const tampered = `${token.slice(0, -6)}AAAAAA`;
  const answers = {
    'no token': await post(CHAT, { key: '' }),
    'an API key of the platform': await post(CHAT, { key: test.platform.apiKey }),
    'a changed token': await post(CHAT, { key: tampered }),
    'another endpoint': await post({}, { path: '/embeddings' }),
    'the unmetered files endpoint': await post({}, { path: '/files' }),
    'no JSON': await post('hello'),
    'two answers': await post({ ...CHAT, n: 2 }),
    'a tool of the provider': await post({ ...CHAT, tools: [WEB] }),
    'a search of the provider': await post({ ...CHAT, web_search_options: {} }),
    audio: await post({ ...CHAT, modalities: ['text', 'audio'] }),
    'another service tier': await post({ ...CHAT, service_tier: 'priority' }),
    'no messages': await post({ model: ALIAS }),
    'a model that the agent may not use': await post({ ...CHAT, model: 'other-model' }),
    'a negative limit': await post({ ...CHAT, max_tokens: -1 }),
    'an Origin header of another site': await post(CHAT, {
      headers: { origin: 'https://evil.example' },
    }),
    'four megabytes': await post({ ...CHAT, user: 'x'.repeat(4 * 1024 * 1024) }),
  };
  const invalid = [400, 'native_field_not_allowed'];
  const hosted = [400, 'hosted_tool_not_allowed'];
  expect(answers).toEqual({
    'no token': [401, 'invalid_api_key'],
    'an API key of the platform': [403, 'role_required'],
    'a changed token': [401, 'invalid_api_key'],
    'another endpoint': [404, 'unsupported_endpoint'],
    'the unmetered files endpoint': [404, 'unsupported_endpoint'],
    'no JSON': [400, 'invalid_json'],
    'two answers': invalid,
    'a tool of the provider': hosted,
    'a search of the provider': hosted,
    audio: invalid,
    'another service tier': invalid,
    'no messages': invalid,
    'a model that the agent may not use': [400, 'model_not_allowed'],
    'a negative limit': invalid,
    'an Origin header of another site': [403, 'host_not_allowed'],
    'four megabytes': [400, 'body_too_large'],
  });
  expect(model.requests).toEqual([]);
  // A token is valid for one run only.
  const answer = await fetch(`${baseUrl}/models`, {
    headers: { authorization: `Bearer ${other.token}` },
  });
  expect(answer.headers.get('x-writ-run-id')).toBe(other.runId);
});

it('issues a run token with the requested lifetime, and rejects an unknown run (AP-1)', async () => {
  const model = await scriptedModel((request, response) => answerText(request, response, 'Hm.'));
  const test = await proxyPlatform(model);
  await expect(test.client.runs.issueRunToken({ runId: 'run_unknown' })).rejects.toMatchObject({
    reason: 'RUN_NOT_FOUND',
  });
  const { runId } = await startExternalRun(test);
  const { expireTime, token } = await test.client.runs.issueRunToken({
    runId,
    lifetime: { seconds: 60n, nanos: 0 },
  });
  expect(token).toMatch(/^writ_run_/);
  expect(Number(expireTime?.seconds)).toBeLessThan(Date.now() / 1_000 + 61);
});

it('limits a connection to a few streams until one of its requests is authenticated (BD-2)', async () => {
  const model = await scriptedModel((request, response) => answerText(request, response, 'Hm.'));
  const { baseUrl, token } = await startExternalRun(await proxyPlatform(model));
  const session = connect(new URL(baseUrl).origin);
  onTestFinished(() => session.destroy());
  await once(session, 'remoteSettings');
  const path = `${new URL(baseUrl).pathname}/chat/completions`;
  expect(await statusOf(session, path, 'writ_run_wrong')).toBe(401);
  await new Promise<void>((resolve) => session.ping(() => resolve()));
  expect(session.remoteSettings.maxConcurrentStreams).toBe(4);
  const raised = once(session, 'remoteSettings');
  expect(await statusOf(session, path, token)).toBe(200);
  await raised;
  expect(session.remoteSettings.maxConcurrentStreams).toBe(1_000);
});

async function statusOf(session: ClientHttp2Session, path: string, key: string): Promise<unknown> {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/json',
    authorization: `Bearer ${key}`,
  });
  stream.end(JSON.stringify(CHAT));
  const [headers] = await once(stream, 'response');
  stream.resume();
  await once(stream, 'close');
  return headers[':status'];
}
