import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import type { ModelEntry } from '../domain/catalog/catalog.ts';
import { countAtProvider } from './count-at-provider.ts';
import { MAX_RESPONSE_BYTES } from './model-call/bounded-fetch.ts';
import { accessAtProvider } from './model-call/stored-response.ts';

/** Returns a model of a provider that `listener` implements. */
async function modelOf(listener: RequestListener): Promise<ModelEntry> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const baseUrl = `http://127.0.0.1:${port}/v1/`;
  return { api: 'openai', baseUrl, providerModel: 'm', timeoutMs: 10_000 } as ModelEntry;
}

const { signal } = new AbortController();
const native = {
  dialect: 'messages',
  body: {},
  headers: {},
  stream: false,
  includeUsage: true,
} as const;
const REQUESTS = [
  [
    'a count of tokens',
    (model: ModelEntry) => countAtProvider({ model, apiKey: 'k', native, signal }),
    '/v1/messages/count_tokens',
  ],
  [
    'a stored response',
    (model: ModelEntry) =>
      accessAtProvider({
        model,
        apiKey: 'k',
        responseId: 'resp_1',
        access: 'read',
        query: '',
        signal,
      }),
    '/v1/responses/resp_1',
  ],
] as const;

it.each(REQUESTS)(
  'requests %s when the base URL ends with a slash (AP-2)',
  async (_, ask, path) => {
    const asked: unknown[] = [];
    const model = await modelOf((request, response) => {
      asked.push(request.url);
      response.end('{"input_tokens":14}');
    });
    expect(await ask(model)).toEqual({ answer: { input_tokens: 14 } });
    expect(asked).toEqual([path]);
  },
);

it.each(
  REQUESTS.flatMap(([name, ask]) => [
    [name, 'a web page', ask, '<html>Welcome</html>'] as const,
    [name, 'a body that is too large', ask, ' '.repeat(MAX_RESPONSE_BYTES + 1)] as const,
  ]),
)('reports an invalid response to a request for %s: %s (AP-2, BD-1)', async (_, __, ask, body) => {
  const model = await modelOf((_request, response) => void response.end(body));
  expect(await ask(model)).toMatchObject({ failure: { what: 'bad_response' } });
});
