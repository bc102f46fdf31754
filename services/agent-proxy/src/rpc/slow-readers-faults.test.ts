import { once } from 'node:events';
import {
  createServer,
  get,
  type IncomingMessage,
  request as post,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { DIALECTS } from '../wire/dialects/index.ts';
import { EventStream } from './model-endpoint/respond.ts';
import { closeSlowReader } from './serve-until-disconnect.ts';

const EVENTS = 32;
/** Returns an event of 1 MiB; all events together exceed the socket buffers of a connection. */
const eventOf = (number: number) =>
  JSON.stringify({ type: 'part', number, text: 'x'.repeat(1024 * 1024) });

/** Starts a server and returns its port. */
async function listen(handle: RequestListener): Promise<number> {
  const server = createServer(handle);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Both sides of a connection whose client reads nothing until it is resumed. */
async function connection(): Promise<{ response: ServerResponse; client: IncomingMessage }> {
  const accepted = Promise.withResolvers<ServerResponse>();
  const port = await listen((_, response) => {
    accepted.resolve(response);
    response.write(': begin\n\n');
  });
  const [client] = await once(get({ port, host: '127.0.0.1', agent: false }), 'response');
  return { response: await accepted.promise, client: client as IncomingMessage };
}

describe.each(DIALECTS)('a stream at $path', (dialect) => {
  it('is sent no faster than its client reads, without loss (AP-2, BD-1)', async () => {
    const { response, client } = await connection();
    closeSlowReader(response, 30_000);
    const stream = new EventStream(response, dialect, 30_000);
    let sent = 0;
    const sending = (async () => {
      for (; sent < EVENTS; sent += 1) await stream.send(eventOf(sent));
      stream.end();
    })();
    await vi.waitFor(() => expect(response.writableNeedDrain).toBe(true));
    expect(sent).toBeLessThan(EVENTS);
    const parts: string[] = [];
    for await (const part of client.setEncoding('utf8')) parts.push(part as string);
    await sending;
    const numbers = [...parts.join('').matchAll(/"number":(\d+)/g)].map(([, number]) => number);
    expect(numbers).toEqual(Array.from({ length: EVENTS }, (_, number) => String(number)));
  });

  it('is closed when its client reads nothing for too long (AP-2, BD-1)', async () => {
    const { response, client } = await connection();
    closeSlowReader(response, 100);
    const stream = new EventStream(response, dialect, 30_000);
    const sending = (async () => {
      for (let number = 0; number < EVENTS; number += 1) await stream.send(eventOf(number));
    })();
    await expect(sending).rejects.toMatchObject({
      message: expect.stringContaining('the client does not read its answer'),
    });
    expect(response.destroyed).toBe(true);
    const failed = once(client, 'error');
    client.resume();
    await failed;
  });
});

it('a stream fails immediately when its client has disconnected before the stream began (AP-2)', async () => {
  const { response, client } = await connection();
  client.destroy();
  await vi.waitFor(() => expect(response.destroyed).toBe(true));
  const [dialect] = DIALECTS;
  if (dialect === undefined) throw new Error('There is no dialect.');
  const stream = new EventStream(response, dialect, 30_000);
  await expect(stream.send(eventOf(1))).rejects.toMatchObject({ kind: 'cancelled' });
});

describe('an answer to an MCP client', () => {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'large' } };
  const text = 'x'.repeat(EVENTS * 1024 * 1024);

  function createLargeServer(): Server {
    const server = new Server({ name: 'large', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/call', async () => ({ content: [{ type: 'text', text }] }));
    return server;
  }

  it('is aborted, and its request ends, when the client reads nothing for too long (AP-3, BD-1)', async () => {
    const handle = toNodeHandler(createMcpHandler(createLargeServer));
    const ended = Promise.withResolvers<ServerResponse>();
    const port = await listen((received, response) => {
      closeSlowReader(response, 100);
      const { method = '', url = '' } = received;
      const request = Object.assign(received, { method, url });
      handle(request, response).then(() => ended.resolve(response), ended.reject);
    });
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const call = post({ port, host: '127.0.0.1', method: 'POST', headers, agent: false });
    call.end(JSON.stringify(message));
    const [client] = (await once(call, 'response')) as [IncomingMessage];
    expect(client.statusCode).toBe(200);
    expect((await ended.promise).destroyed).toBe(true);
    const failed = once(client, 'error');
    client.resume();
    await failed;
  });
});
