import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { DIALECTS } from '../../wire/dialects/index.ts';
import { EventStream } from './respond.ts';

const EVENTS = 32;
/** Together larger than what the sockets of a connection buffer. */
const eventOf = (number: number) =>
  JSON.stringify({ type: 'part', number, text: 'x'.repeat(1024 * 1024) });

/** Both sides of a connection whose client reads nothing until it is resumed. */
async function connection(): Promise<{ response: ServerResponse; client: IncomingMessage }> {
  const accepted = Promise.withResolvers<ServerResponse>();
  const server = createServer((_, response) => {
    accepted.resolve(response);
    response.write(': begin\n\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const [client] = await once(get({ port, host: '127.0.0.1', agent: false }), 'response');
  return { response: await accepted.promise, client: client as IncomingMessage };
}

describe.each(DIALECTS)('a stream at $path', (dialect) => {
  it('is sent as fast as its client reads, without a loss (AP-2, BD-1)', async () => {
    const { response, client } = await connection();
    const stream = new EventStream(response, dialect, {
      slowReaderMs: 30_000,
      keepAliveMs: 30_000,
    });
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
    const stream = new EventStream(response, dialect, { slowReaderMs: 100, keepAliveMs: 30_000 });
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
