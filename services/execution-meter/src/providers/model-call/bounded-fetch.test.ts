import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { shortenFetchTimeouts } from '@writ/testing/faults';
import { expect, it, onTestFinished } from 'vitest';
import { BodyReader, boundedFetch, MAX_RESPONSE_BYTES } from './bounded-fetch.ts';

/** Starts a server; it is closed after the test. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}/`;
}

/** A server whose response inflates to more than the limit. */
async function serveBomb(): Promise<string> {
  const bomb = gzipSync(Buffer.alloc(2 * MAX_RESPONSE_BYTES));
  return await serve((_, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
  );
}

it('limits a compressed response by its inflated size (BD-1)', async () => {
  const body = new BodyReader(await boundedFetch(await serveBomb()));
  let received = 0;
  const read = async () => {
    for (let chunk = await body.read(); chunk !== undefined; chunk = await body.read())
      received += chunk.byteLength;
  };
  await expect(read()).rejects.toThrow('is larger than 33554432 bytes');
  expect(received).toBeGreaterThan(MAX_RESPONSE_BYTES / 2);
  expect(received).toBeLessThanOrEqual(MAX_RESPONSE_BYTES);
});

it.each(['text', 'json'] as const)('limits what %s() reads (BD-1)', async (read) => {
  const response = await boundedFetch(await serveBomb());
  await expect(response[read]()).rejects.toThrow('is larger than 33554432 bytes');
});

it('waits longer for a response than the built-in fetch (EM-8)', async () => {
  onTestFinished(shortenFetchTimeouts());
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
  const url = await serve((_, response) => void finished.then(() => response.end('{}')));
  const [response] = await Promise.all([
    boundedFetch(url),
    expect(fetch(url)).rejects.toThrow('fetch failed').then(finish),
  ]);
  expect(await response.json()).toEqual({});
});
