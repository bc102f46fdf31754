import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect, it, onTestFinished } from 'vitest';
import { boundedFetch, RESPONSE_LIMITS } from './bounded-fetch.ts';

/** A server whose response inflates to more than the limit. */
async function serveBomb(): Promise<string> {
  const bomb = gzipSync(Buffer.alloc(2 * RESPONSE_LIMITS.bytes));
  const server = createServer((_, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}/`;
}

it('limits a compressed response by its inflated size (BD-1)', async () => {
  const { body } = await boundedFetch(await serveBomb());
  let received = 0;
  const read = async () => {
    for await (const chunk of body ?? []) received += chunk.byteLength;
  };
  await expect(read()).rejects.toThrow('is larger than 33554432 bytes');
  expect(received).toBeGreaterThan(RESPONSE_LIMITS.bytes / 2);
  expect(received).toBeLessThanOrEqual(RESPONSE_LIMITS.bytes);
});

it.each(['text', 'json'] as const)('reads no more by %s() than the limit (BD-1)', async (read) => {
  const response = await boundedFetch(await serveBomb());
  await expect(response[read]()).rejects.toThrow('is larger than 33554432 bytes');
});
