import { createTelemetry } from '@writ/telemetry';
import { shortenFetchTimeouts } from '@writ/testing/faults';
import { expect, it, onTestFinished } from 'vitest';
import { type Received, serveAnswers } from '../../../test/mcp/answering-server.ts';
import { toolInvocation } from '../../../test/tool-invocation.ts';
import { openMcpSource } from './mcp-source.ts';

const BUILD = { id: 1, method: 'tools/call', params: { name: 'build' } };

it('waits for the result of a call longer than the built-in fetch (TG-6)', async () => {
  onTestFinished(shortenFetchTimeouts());
  const held: Received[] = [];
  const { url } = await serveAnswers(
    (received) => received.name === 'build' && held.push(received) > 0,
  );
  const { log } = createTelemetry({ service: 'tool-gateway', logLevel: 'silent' });
  const server = { transport: 'http', url, headers: {} } as const;
  const source = openMcpSource({ name: 'odd', server, log });
  onTestFinished(() => source.close());

  const answer = source.invoke(toolInvocation('odd__build', { timeoutMs: 60_000 }));
  await expect.poll(() => held.length).toBe(1);
  const request = fetch(url, { method: 'POST', body: JSON.stringify(BUILD) });
  await expect(request).rejects.toThrow('fetch failed');
  held[0]?.reply();
  expect(await answer).toEqual({ kind: 'output', output: { kind: 'text', content: 'done' } });
});
