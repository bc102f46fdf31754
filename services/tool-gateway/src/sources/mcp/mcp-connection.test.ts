import type { ServerResponse } from 'node:http';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Received, serveAnswers } from '../../../test/mcp/answering-server.ts';
import { toolInvocation } from '../../../test/tool-invocation.ts';
import type { OfferedTools, ToolSource } from '../source.ts';
import { McpConnection } from './mcp-connection.ts';
import { openMcpSource } from './mcp-source.ts';

const serverAt = (url: string) => ({ transport: 'http', url, headers: {} }) as const;

function sourceAt(url: string): ToolSource {
  const { log } = createTelemetry({ service: 'tool-gateway', logLevel: 'silent' });
  const source = openMcpSource({ name: 'odd', server: serverAt(url), log });
  onTestFinished(() => source.close());
  return source;
}

/** A function that calls a tool of the server. */
/** Longer than a test may take, because a call that times out has the same answer as a lost call. */
const CALL_TIMEOUT_MS = 600_000;

function callsTo(url: string) {
  const source = sourceAt(url);
  const options = { timeoutMs: CALL_TIMEOUT_MS };
  return (tool: string) => source.invoke(toolInvocation(`odd__${tool}`, options));
}

function connectionTo(url: string): McpConnection {
  const ignore = () => undefined;
  const connection = new McpConnection(serverAt(url), { toolsChanged: ignore, exceeded: ignore });
  onTestFinished(() => connection.close());
  return connection;
}

const CONNECT = 'initialize';
const EVENTS = { 'content-type': 'text/event-stream' };
const DONE = { kind: 'output', output: { kind: 'text', content: 'done' } };
const REJECTED = { kind: 'failed', message: 'The server of odd__reject rejected the call.' };

describe('the connection to an MCP server (TG-6)', () => {
  it.each([401, 403, 409, 413, 429])(
    'stays open for other calls when the server rejects a call with status %i',
    async (status) => {
      const held = Promise.withResolvers<Received>();
      const { url, names } = await serveAnswers((received) => {
        if (received.name === 'reject') received.response.writeHead(status).end();
        if (received.name === 'slow') held.resolve(received);
        return ['reject', 'slow'].includes(received.name);
      });
      const call = callsTo(url);
      const slow = call('slow');
      const { reply } = await held.promise;
      expect(await call('reject')).toEqual(REJECTED);
      reply();
      expect(await slow).toEqual(DONE);
      expect(names).toEqual([CONNECT, 'slow', 'reject']);
    },
  );

  it.each([404, 400])(
    'is replaced after status %i, which servers return for an unknown session, and its calls continue',
    async (status) => {
      const held = Promise.withResolvers<Received>();
      const { url, names } = await serveAnswers((received) => {
        if (received.name === 'reject') received.response.writeHead(status).end();
        if (received.name === 'slow') held.resolve(received);
        return ['reject', 'slow'].includes(received.name);
      });
      const call = callsTo(url);
      const slow = call('slow');
      const { reply } = await held.promise;
      expect(await call('reject')).toEqual(REJECTED);
      expect(await call('look')).toEqual(DONE);
      expect(names).toEqual([CONNECT, 'slow', 'reject', CONNECT, 'look']);
      reply();
      expect(await slow).toEqual(DONE);
    },
  );

  it('is replaced when the server refuses a TCP connection, and its calls continue', async () => {
    const held = Promise.withResolvers<Received>();
    const { url, stopListening } = await serveAnswers(
      (received) => {
        // Each request needs a TCP connection of its own.
        received.response.setHeader('connection', 'close');
        if (received.name === 'slow') held.resolve(received);
        return received.name === 'slow';
      },
      {
        stream: (response) => response.writeHead(405, { connection: 'close' }).end(),
        notified: (response) => response.writeHead(202, { connection: 'close' }).end(),
      },
    );
    const call = callsTo(url);
    const slow = call('slow');
    const { reply } = await held.promise;
    stopListening();
    expect(await call('look')).toEqual({
      kind: 'failed',
      message: 'The server of odd__look is unreachable.',
    });
    reply();
    expect(await slow).toEqual(DONE);
  });

  it('is replaced when the notification stream fails with status 404, and its calls continue', async () => {
    const held = Promise.withResolvers<Received>();
    const streams: ServerResponse[] = [];
    const { url, names } = await serveAnswers(
      (received) => {
        if (received.name === 'slow') held.resolve(received);
        return received.name === 'slow';
      },
      {
        stream: (response) => {
          streams.push(response);
          if (streams.length === 2) return response.writeHead(404).end();
          return response.writeHead(200, EVENTS).write('retry: 1\n\n');
        },
      },
    );
    const source = sourceAt(url);
    source.watch?.(() => undefined);
    await expect.poll(() => streams.length).toBe(1);
    const slow = source.invoke(toolInvocation('odd__slow'));
    const { reply } = await held.promise;
    streams[0]?.end();
    await expect.poll(() => names.filter((name) => name === CONNECT).length).toBe(2);
    reply();
    expect(await slow).toEqual(DONE);
  });

  it('is not closed for a call that failed on an earlier connection', async () => {
    const { url, names } = await serveAnswers(() => false);
    const connection = connectionTo(url);
    const first = await connection.client();
    connection.replace(first);
    const second = await connection.client();
    connection.replace(first);
    expect(await connection.client()).toBe(second);
    expect(names).toEqual([CONNECT, CONNECT]);
  });

  it('stays open when a replaced connection is established late and then closed', async () => {
    const connects: Received[] = [];
    const { url } = await serveAnswers((received) => connects.push(received) > 0);
    const connection = connectionTo(url);
    const first = connection.client();
    await expect.poll(() => connects.length).toBe(1);
    const closed = connection.suspend(0);
    const second = connection.client();
    await expect.poll(() => connects.length).toBe(2);
    connects[0]?.reply();
    await first;
    await closed;
    connects[1]?.reply();
    expect(await connection.client()).toBe(await second);
    expect(connects).toHaveLength(2);
  });

  it('is replaced when the notification stream cannot be reopened, and its calls continue', async () => {
    const held = Promise.withResolvers<Received>();
    const streams: ServerResponse[] = [];
    const tools = ['look', 'slow'];
    const { url, names } = await serveAnswers(
      (received) => {
        if (received.name === 'slow') held.resolve(received);
        return received.name === 'slow';
      },
      {
        tools: () => tools,
        stream: (response) => {
          streams.push(response);
          // The first stream can be read; the client then gives up after two failed attempts to reopen it.
          if (streams.length > 1) return response.writeHead(503).end();
          return response.writeHead(200, EVENTS).write('retry: 1\n\n');
        },
      },
    );
    const source = sourceAt(url);
    const offers: OfferedTools[] = [];
    source.watch?.((offered) => void offers.push(offered));
    await expect.poll(() => offers.length).toBe(1);
    const slow = source.invoke(toolInvocation('odd__slow'));
    const { response, reply } = await held.promise;
    tools.push('new');
    streams[0]?.end();
    await expect.poll(() => Object.keys(offers.at(-1) ?? {})).toContain('odd__new');
    expect(names.filter((name) => name === CONNECT)).toHaveLength(2);
    expect(response.destroyed).toBe(false);
    reply();
    expect(await slow).toEqual(DONE);
  });

  it('is closed after its last call when it was replaced', async () => {
    const streams: ServerResponse[] = [];
    const { url, names } = await serveAnswers(
      ({ name, response }) => {
        if (name === 'reject') response.writeHead(404).end();
        return ['reject', 'slow'].includes(name);
      },
      {
        stream: (response) => {
          streams.push(response);
          return response.writeHead(200, EVENTS).flushHeaders();
        },
      },
    );
    const source = sourceAt(url);
    source.watch?.(() => undefined);
    await expect.poll(() => streams.length).toBe(1);
    const [notifications] = streams;
    const cancelled = new AbortController();
    const { signal } = cancelled;
    const slow = source.invoke(toolInvocation('odd__slow', { signal }));
    await expect.poll(() => names).toContain('slow');
    expect(await source.invoke(toolInvocation('odd__reject'))).toEqual(REJECTED);
    await expect.poll(() => streams.length).toBe(2);
    expect(notifications?.destroyed).toBe(false);
    cancelled.abort();
    expect(await slow).toEqual({ kind: 'lost', message: 'odd__slow was cancelled.' });
    await expect.poll(() => notifications?.destroyed).toBe(true);
  });

  it.each([
    ['ends', (response: ServerResponse) => response.end()],
    ['breaks', (response: ServerResponse) => response.destroy()],
    [
      'cannot be resumed',
      // The client tries twice to open a stream that continues after the event.
      (response: ServerResponse) => response.end('id: 1\nretry: 1\ndata:\n\n'),
    ],
  ])(
    'loses a call at once if its response %s before the result, and other calls continue',
    async (_, stop) => {
      const held = new Map<string, Received>();
      const streams: ServerResponse[] = [];
      const { url, names } = await serveAnswers(
        (received) => {
          if (['look', CONNECT].includes(received.name)) return false;
          if (received.name === 'lost') received.response.writeHead(200, EVENTS).flushHeaders();
          return held.set(received.name, received).has(received.name);
        },
        {
          stream: (response) => {
            streams.push(response);
            const isResumed = response.req.headers['last-event-id'] !== undefined;
            if (isResumed || streams.length === 2) return response.writeHead(404).end();
            return response.writeHead(200, EVENTS).write('retry: 1\n\n');
          },
        },
      );
      const call = callsTo(url);
      await call('look');
      await expect.poll(() => streams.length).toBe(1);
      const [lost, slow] = [call('lost'), call('slow')];
      await expect.poll(() => held.size).toBe(2);
      // As after a restart of the server, the notification stream fails too, so that the connection is replaced.
      streams[0]?.end();
      await expect
        .poll(async () => {
          expect(await call('look')).toEqual(DONE);
          return names.filter((name) => name === CONNECT).length;
        })
        .toBe(2);
      const response = held.get('lost')?.response;
      if (response !== undefined) stop(response);
      const answer = { kind: 'lost', message: 'The server of odd__lost did not respond.' };
      expect(await lost).toEqual(answer);
      held.get('slow')?.reply();
      expect(await slow).toEqual(DONE);
    },
  );
});
