import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { shortenFetchTimeouts } from '@writ/testing/faults';
import { expect, it, onTestFinished } from 'vitest';
import { fetchLongCall } from './fetch-long-call.ts';

/** A server that sends `first` for each request, and the rest of the response only after `finish` was called. */
async function serveSlowly(first: string) {
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
  const server = createServer(async (_, response) => {
    if (first !== '') response.write(first);
    await finished;
    response.end('done');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, finish };
}

const textOf = async (response: Promise<Response>) => await (await response).text();

it.each([
  ['the response headers', '', 'UND_ERR_HEADERS_TIMEOUT'],
  ['the rest of the body', 'first, ', 'UND_ERR_BODY_TIMEOUT'],
])('waits longer for %s than the built-in fetch (EM-8, TG-6)', async (_, first, code) => {
  onTestFinished(shortenFetchTimeouts());
  const { url, finish } = await serveSlowly(first);
  const [text] = await Promise.all([
    textOf(fetchLongCall(url)),
    expect(textOf(fetch(url)))
      .rejects.toMatchObject({ cause: { code } })
      .then(finish),
  ]);
  expect(text).toBe(`${first}done`);
});
