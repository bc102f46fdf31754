import type { ServerResponse } from 'node:http';
import { createTelemetry } from '@writ/telemetry';
import { shortenFetchTimeouts } from '@writ/testing/faults';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type Received, serveAnswers } from '../../../test/mcp/answering-server.ts';
import { toolInvocation } from '../../../test/tool-invocation.ts';
import { openMcpSource } from './mcp-source.ts';

const BUILD = { id: 1, method: 'tools/call', params: { name: 'build' } };

/** Opens the MCP server at `url` as the source `odd`, which is closed after the test. */
function sourceAt(url: string) {
  const { log } = createTelemetry({ service: 'tool-gateway', logLevel: 'silent' });
  const server = { transport: 'http', url, headers: {} } as const;
  const source = openMcpSource({ name: 'odd', server, log });
  onTestFinished(() => source.close());
  return source;
}

/** Opens the server like {@link sourceAt}, and connects to it, so that the timeout of a call begins when it is sent. */
async function connectedTo(url: string) {
  const source = sourceAt(url);
  expect(await source.invoke(toolInvocation('odd__other'))).toMatchObject({ kind: 'output' });
  return source;
}

it('waits longer for the result of a call than the built-in fetch (TG-6)', async () => {
  onTestFinished(shortenFetchTimeouts());
  const held: Received[] = [];
  const { url } = await serveAnswers(
    (received) => received.name === 'build' && held.push(received) > 0,
  );
  const answer = sourceAt(url).invoke(toolInvocation('odd__build', { timeoutMs: 60_000 }));
  await expect.poll(() => held.length).toBe(1);
  const request = fetch(url, { method: 'POST', body: JSON.stringify(BUILD) });
  await expect(request).rejects.toThrow('fetch failed');
  held[0]?.reply();
  expect(await answer).toEqual({ kind: 'output', output: { kind: 'text', content: 'done' } });
});

it('ends the requests of calls that have timed out, so that they do not accumulate (TG-6, BD-1)', async () => {
  const held: Received[] = [];
  const { url } = await serveAnswers(
    (received) => received.name === 'build' && held.push(received) > 0,
  );
  const source = await connectedTo(url);
  const calls = Array.from({ length: 5 }, () =>
    source.invoke(toolInvocation('odd__build', { timeoutMs: 500 })),
  );
  expect(await Promise.all(calls)).toEqual(
    calls.map(() => expect.objectContaining({ kind: 'lost' })),
  );
  expect(held).toHaveLength(5);
  await expect.poll(() => held.map(({ response }) => response.closed)).not.toContain(false);
});

it('opens no further request for a call that has timed out, if the server sends event ids (TG-6, BD-1)', async () => {
  const held: ServerResponse[] = [];
  const streams: ServerResponse[] = [];
  const { url } = await serveAnswers(
    ({ name, response }) => {
      if (name !== 'build') return false;
      // An event with an id and without data, after which the SDK opens the stream again.
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('id: 1\nretry: 10\ndata:\n\n');
      return held.push(response) > 0;
    },
    { stream: (response) => streams.push(response) && response.writeHead(405).end() },
  );
  const source = await connectedTo(url);
  const answer = await source.invoke(toolInvocation('odd__build', { timeoutMs: 500 }));
  expect(answer).toMatchObject({ kind: 'lost' });
  await expect.poll(() => held.map(({ closed }) => closed)).toEqual([true]);
  const opened = streams.length;
  // A later call on the same connection is answered, and the SDK has opened no stream for the first one.
  expect(await source.invoke(toolInvocation('odd__other'))).toMatchObject({ kind: 'output' });
  expect(streams).toHaveLength(opened);
});

it('fails when a server does not complete the handshake (TG-6, BD-1)', async () => {
  const held: ServerResponse[] = [];
  const { url } = await serveAnswers(() => false, { notified: (response) => held.push(response) });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const source = sourceAt(url);
  const offer = expect(source.offer?.()).rejects.toThrow('unreachable');
  await expect.poll(() => held.length).toBe(1);
  vi.advanceTimersByTime(10_000);
  await offer;
  await source.close();
});
