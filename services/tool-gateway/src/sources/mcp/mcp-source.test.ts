import { fileURLToPath } from 'node:url';
import { withTimeout } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { toolInvocation } from '../../../test/tool-invocation.ts';
import type { ToolSource } from '../source.ts';
import { openMcpSource } from './mcp-source.ts';

const SERVER = fileURLToPath(new URL('../../../test/mcp/fragile-server.ts', import.meta.url));
const { log } = createTelemetry({ service: 'tool-gateway', logLevel: 'silent' });

const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

let source: ToolSource;

function open(...args: readonly string[]): ToolSource {
  const server = {
    transport: 'stdio',
    command: process.execPath,
    args,
    env: {},
    cwd: '/',
  } as const;
  return openMcpSource({ name: 'odd', server, log });
}

beforeEach(() => {
  source = open(SERVER);
});

afterEach(() => source.close());

const invoke = (tool: string, signal = new AbortController().signal) =>
  source.invoke(toolInvocation(`odd__${tool}`, { signal, traceparent: TRACEPARENT }));

describe('an MCP server', () => {
  it('receives the trace context and the idempotency key, and no token (SYS-1, TG-6)', async () => {
    const answer = await invoke('meta');
    const content = answer.kind === 'output' ? String(answer.output.content) : '';
    expect(JSON.parse(content)).toEqual({
      'writ/idempotency-key': 'idem_1',
      traceparent: TRACEPARENT,
    });
  });
});

describe('a faulty MCP server (TG-6, SYS-4)', () => {
  it('returns its tool errors to the model, but not the details of its protocol errors', async () => {
    expect(await invoke('fail')).toEqual({ kind: 'failed', message: 'No such page.' });
    expect(await invoke('refuse')).toEqual({
      kind: 'failed',
      message: 'The server of odd__refuse rejected the call.',
    });
    expect((await invoke('garble')).kind).toBe('bad_result');
    expect(await invoke('babble')).toMatchObject({ output: { kind: 'text', content: 'well' } });
  });

  it('causes an unknown outcome when it dies during a call, and is restarted after a back-off', async () => {
    const first = await invoke('pid');
    expect(await invoke('die')).toEqual({
      kind: 'lost',
      message: 'The server of odd__die did not respond.',
    });
    expect(await invoke('pid')).toEqual({
      kind: 'failed',
      message: 'The server of odd__pid is unreachable.',
    });
    const next = await vi.waitUntil(async () => {
      const answer = await invoke('pid');
      return answer.kind === 'output' && answer;
    });
    expect(next).not.toEqual(first);
  });

  it('is closed when it sends too much, and its call is lost', async () => {
    expect((await invoke('flood')).kind).toBe('lost');
  });

  it('fails its calls when it cannot be started', async () => {
    await source.close();
    source = open('/nowhere/server.js');
    expect((await invoke('pid')).kind).toBe('failed');
    await expect(source.offer?.()).rejects.toThrow();
  });

  it('fails every call that waits for the same connection attempt, since nothing was sent (TG-5)', async () => {
    await source.close();
    source = open('/nowhere/server.js');
    const unreachable = { kind: 'failed', message: 'The server of odd__pid is unreachable.' };
    const answers = await Promise.all([invoke('pid'), invoke('pid'), invoke('pid')]);
    expect(answers).toEqual([unreachable, unreachable, unreachable]);
  });

  it('fails a call that times out during the connection attempt, since nothing was sent (TG-5)', async () => {
    await source.close();
    // A server that never answers; it exits soon, so that the source can be closed.
    source = open('--eval', 'setTimeout(() => undefined, 500)');
    const answer = source.invoke(toolInvocation('odd__pid', { timeoutMs: 200 }));
    expect(await withTimeout(answer, 200, () => 'timeout of the gateway')).toEqual({
      kind: 'failed',
      message: 'The server of odd__pid is unreachable.',
    });
  });

  it('does not receive a cancelled call', async () => {
    const signal = AbortSignal.abort();
    expect(await invoke('die', signal)).toEqual({
      kind: 'cancelled',
      message: 'odd__die was cancelled before it started.',
    });
    expect((await invoke('pid')).kind).toBe('output');
  });

  it('receives a cancellation of a running call (SUP-6)', async () => {
    expect((await invoke('pid')).kind).toBe('output');
    const controller = new AbortController();
    const hanging = invoke('hang', controller.signal);
    // The pipe is ordered: this response means that the other call has started.
    await invoke('pid');
    controller.abort();
    expect(await hanging).toEqual({ kind: 'lost', message: 'odd__hang was cancelled.' });
    expect(await invoke('cancelled')).toMatchObject({ output: { content: '1' } });
  });

  it('may return the URL of an image', async () => {
    expect(await invoke('picture')).toEqual({
      kind: 'output',
      output: {
        kind: 'image',
        content: 'https://pictures.test/cat.png',
        mediaType: 'image/png',
      },
    });
  });

  it('offers every tool as destructive and with risk 1', async () => {
    const offer = await source.offer?.();
    expect(offer?.odd__pid).toMatchObject({ sideEffect: 'destructive', risk: 1 });
  });
});
