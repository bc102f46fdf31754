import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect, it, onTestFinished } from 'vitest';
import { boundedFetch, RESPONSE_LIMITS } from './bounded-fetch.ts';

it('passes on no more of a compressed response than its limit, whatever it inflates to (BD-1)', async () => {
  const bomb = gzipSync(Buffer.alloc(2 * RESPONSE_LIMITS.bytes));
  const server = createServer((_, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const { body } = await boundedFetch(`http://127.0.0.1:${port}/`);
  let received = 0;
  const read = async () => {
    for await (const chunk of body ?? []) received += chunk.byteLength;
  };
  await expect(read()).rejects.toThrow('is larger than 33554432 bytes');
  expect(received).toBeGreaterThan(RESPONSE_LIMITS.bytes / 2);
  expect(received).toBeLessThanOrEqual(RESPONSE_LIMITS.bytes);
});
