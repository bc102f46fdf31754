import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { APIError } from 'openai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { boundedFetch } from './bounded-fetch.ts';
import { MAX_EVENT_CHARS, readEvents } from './event-stream.ts';

/** Starts a server whose event streams are written by `respond`. */
async function serve(respond: (response: ServerResponse) => unknown) {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    void respond(response);
  });
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const read = async (): Promise<unknown[]> =>
    await Array.fromAsync(readEvents(await boundedFetch(`http://127.0.0.1:${port}/`)));
  return { read, countConnections: () => connections };
}

describe('an event stream of a provider', () => {
  it('is parsed up to [DONE] from one-byte chunks with comments and mixed line endings (EM-8)', async () => {
    const text =
      ': hello\r\n\r\ndata: {"n":1}\r\n\r\ndata: {"n":"€"}\n\ndata: [DONE]\n\ndata: {"n":3}\n\n';
    const { read } = await serve(async (response) => {
      for (const byte of Buffer.from(text)) response.write(Buffer.of(byte));
      response.end();
    });
    expect(await read()).toEqual([{ n: 1 }, { n: '€' }]);
  });

  it('includes a last event without an empty line after it (EM-8)', async () => {
    const { read } = await serve((response) => response.end('data: {"n":1}\n\ndata: {"n":2}'));
    expect(await read()).toEqual([{ n: 1 }, { n: 2 }]);
  });

  it('keeps its connection open for the next request when it ends after [DONE] (EM-8)', async () => {
    const { read, countConnections } = await serve(async (response) => {
      response.write('data: {"n":1}\n\ndata: [DONE]\n\n');
      await sleep(20);
      response.end();
    });
    expect(await read()).toEqual([{ n: 1 }]);
    await sleep(200);
    expect(await read()).toEqual([{ n: 1 }]);
    expect(countConnections()).toBe(1);
  });

  it('closes its connection when the server does not end it after [DONE] (BD-1)', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const { read } = await serve((response) => {
      response.on('close', resolve);
      response.write('data: [DONE]\n\n');
    });
    expect(await read()).toEqual([]);
    await closed;
  });

  it.each([
    ['its field', 'data: {"error":{"code":"429"}}\n\n'],
    ['its name', 'event: error\ndata: {"code":"429"}\n\n'],
  ])(
    'fails with an APIError for an error that the provider marks by %s (EM-8)',
    async (_, text) => {
      const { read } = await serve((response) => response.end(text));
      const error = await read().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(APIError);
      expect(error).toMatchObject({ code: '429', status: undefined });
    },
  );

  it('fails on an event that is not JSON (EM-9)', async () => {
    const { read } = await serve((response) => response.end('data: {"n":\n\n'));
    await expect(read()).rejects.toThrow(SyntaxError);
  });

  it.each([
    ['one line', 'x'.repeat(MAX_EVENT_CHARS + 1)],
    ['one event of many lines', `data: ${'x'.repeat(1_000)}\n`.repeat(MAX_EVENT_CHARS / 1_000 + 1)],
  ])('fails and closes its connection when %s is too long (BD-1)', async (_, text) => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const { read } = await serve((response) => {
      response.on('close', resolve);
      response.write(text);
    });
    await expect(read()).rejects.toThrow('is longer than 1048576 characters');
    await closed;
  });
});
