import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { newId } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import {
  ALIAS,
  CLAUDE,
  type ExternalRun,
  proxyPlatform,
  startExternalRun,
} from './external-run.ts';
import { begin, rawRequest } from './raw-request.ts';
import { answerText, type ModelRequest, scriptedModel } from './scripted-model.ts';

const TEXT = 'One two three.';
/** A prompt; the model begins to answer it only after {@link HeldModel.release}. */
const SILENT = 'before the answer';

const says = (content: string) => [{ role: 'user', content }];
const OPENAI_KEYS = ['code', 'message', 'param', 'type'];
const DIALECTS = {
  'chat completions': {
    path: '/chat/completions',
    ask: (text: string) => ({ model: ALIAS, messages: says(text) }),
    errorKeys: OPENAI_KEYS,
    endOfStream: 'data: [DONE]',
  },
  responses: {
    path: '/responses',
    ask: (text: string) => ({ model: ALIAS, input: text }),
    errorKeys: OPENAI_KEYS,
    endOfStream: '"type":"response.completed"',
  },
  messages: {
    path: '/messages',
    ask: (text: string) => ({ model: CLAUDE, max_tokens: 50, messages: says(text) }),
    errorKeys: ['code', 'message', 'type'],
    endOfStream: '"type":"message_stop"',
  },
};

describe.each(Object.entries(DIALECTS))('bad clients of %s', (_, dialect) => {
  const { path, ask, errorKeys, endOfStream } = dialect;
  const toJson = (text: string, more: object = {}) => JSON.stringify({ ...ask(text), ...more });
  const requestOf = ({ baseUrl, token }: ExternalRun, body: string) => ({
    url: `${baseUrl}${path}`,
    headers: { authorization: `Bearer ${token}` },
    body,
  });

  it('get errors in the format of their dialect, before a request to the model (AP-2, SYS-4, BD-1)', async () => {
    const model = await scriptedModel((request, response) => answerText(request, response, TEXT));
    const test = await proxyPlatform(model);
    const run = await startExternalRun(test);
    const other = await startExternalRun(test);
    const send = async ({
      body = toJson('Hello.'),
      headers = {},
      token = run.token,
      route = path,
      method = 'POST',
    }) => {
      const { status, text } = await rawRequest({
        url: `${run.baseUrl}${route}`,
        method,
        headers: { ...(token !== '' && { authorization: `Bearer ${token}` }), ...headers },
        body,
      });
      if (status === 200) return [status];
      const { error } = JSON.parse(text) as { readonly error: Readonly<Record<string, string>> };
      expect(Object.keys(error).toSorted()).toEqual(errorKeys);
      expect(error.message).toMatch(/\.$/);
      return [status, error.code];
    };
    const key = { 'idempotency-key': 'k_1' };
    expect({
      'an unknown route': await send({ route: `${path}/unknown` }),
      'another method': await send({ method: 'PUT' }),
      'no token': await send({ token: '' }),
      'a changed token': await send({ token: `${run.token.slice(0, -6)}AAAAAA` }),
      'an API key of the platform': await send({ token: test.platform.apiKey }),
      'an Origin header of another site': await send({
        headers: { origin: 'https://evil.example' },
      }),
      'a Host header of another site': await send({ headers: { host: 'evil.example' } }),
      'no JSON': await send({ body: 'hello' }),
      'no object': await send({ body: '[]' }),
      '100 levels of nesting': await send({ body: `${'['.repeat(100)}${']'.repeat(100)}` }),
      'four megabytes': await send({ body: toJson('x'.repeat(4 * 1024 * 1024)) }),
      'a model that the agent may not use': await send({
        body: toJson('Hello.', { model: 'other-model' }),
      }),
    }).toEqual({
      'an unknown route': [404, 'unsupported_endpoint'],
      'another method': [404, 'unsupported_endpoint'],
      'no token': [401, 'invalid_api_key'],
      'a changed token': [401, 'invalid_api_key'],
      'an API key of the platform': [403, 'role_required'],
      'an Origin header of another site': [403, 'host_not_allowed'],
      'a Host header of another site': [403, 'host_not_allowed'],
      'no JSON': [400, 'invalid_json'],
      'no object': [400, 'invalid_chat_request'],
      '100 levels of nesting': [400, 'json_too_deep'],
      'four megabytes': [400, 'body_too_large'],
      'a model that the agent may not use': [400, 'model_not_allowed'],
    });
    expect(model.requests).toEqual([]);
    // An idempotency key identifies one request of one run.
    expect(await send({ headers: key })).toEqual([200]);
    const reused = await send({ headers: key, body: toJson('Something else.') });
    expect(reused).toEqual([409, 'call_id_reused']);
    expect(model.requests).toHaveLength(1);
    const ofOtherRun = { headers: key, body: toJson('Something else.'), token: other.token };
    expect(await send(ofOtherRun)).toEqual([200]);
    expect(model.requests).toHaveLength(2);
    // Requests with the token of an ended run are refused.
    await test.client.runs.closeRun({ requestId: newId('req'), runId: run.runId });
    await vi.waitFor(async () => expect(await send({})).toEqual([403, 'run_ended']));
    expect(await send({ headers: key })).toEqual([403, 'run_ended']);
  });

  it('lose no answer and pay once when they disconnect at any point (AP-2, EM-7)', async () => {
    const held = new HeldModel();
    const model = await scriptedModel((request, response) => held.answer(request, response));
    const test = await proxyPlatform(model);
    const run = await startExternalRun(test);
    const disconnect = async (
      text: string,
      until: (call: ReturnType<typeof begin>) => Promise<void>,
    ) => {
      const call = begin(requestOf(run, toJson(text, { stream: true })));
      call.on('error', () => undefined);
      await until(call);
      call.destroy();
    };
    const untilAsked = (text: string) =>
      vi.waitFor(() => expect(askedFor(model.requests, text)).toBe(1));
    await disconnect('within the request', async (call) => {
      await new Promise((resolve) => call.write('{"model":', resolve));
    });
    await disconnect(SILENT, async (call) => {
      call.end(toJson(SILENT, { stream: true }));
      await untilAsked(SILENT);
    });
    await disconnect('within the answer', async (call) => {
      call.end(toJson('within the answer', { stream: true }));
      const [response] = (await once(call, 'response')) as [IncomingMessage];
      await once(response, 'data');
    });
    held.release();
    // The answer is complete, but the client reads none of it.
    await disconnect('after the answer', async (call) => {
      call.end(toJson('after the answer', { stream: true }));
      await once(call, 'response');
    });
    for (const text of ['within the request', SILENT, 'within the answer', 'after the answer']) {
      const request = requestOf(run, toJson(text, { stream: true }));
      // The SDKs of OpenAI and Anthropic mark their retries with this header.
      const headers = { ...request.headers, 'x-stainless-retry-count': '1' };
      const { status, text: answer } = await rawRequest({ ...request, headers });
      expect([text, status]).toEqual([text, 200]);
      expect(answer).toContain('three.');
      expect(answer).toContain(endOfStream);
      expect([text, askedFor(model.requests, text)]).toEqual([text, 1]);
    }
    const { tab } = await test.client.usage.getRunUsage({ runId: run.runId });
    expect(tab?.totals).toMatchObject({ turns: 4n, estimatedTurns: 0n });
  });
});

function askedFor(requests: readonly ModelRequest[], text: string): number {
  return requests.filter(({ body }) => JSON.stringify(body).includes(text)).length;
}

/**
 * A model that streams the first event of each answer immediately, except for {@link SILENT}, and all other events
 * after {@link HeldModel.release}.
 */
class HeldModel {
  readonly #released = Promise.withResolvers<void>();

  release(): void {
    this.#released.resolve();
  }

  async answer(request: ModelRequest, response: ServerResponse): Promise<void> {
    const [first = '', ...rest] = eventsOf(request);
    if (askedFor([request], SILENT) > 0) await this.#released.promise;
    response.setHeader('content-type', 'text/event-stream');
    response.write(first);
    await this.#released.promise;
    response.end(rest.join(''));
  }
}

/** Returns the events of the streamed answer to a request. */
function eventsOf(request: ModelRequest): readonly string[] {
  const events: string[] = [];
  const collected = {
    setHeader: () => undefined,
    write: (event: string) => events.push(event),
    end: (event = '') => events.push(event),
  };
  answerText(request, collected as unknown as ServerResponse, TEXT);
  return events;
}
