import { execFileSync } from 'node:child_process';
import { InternalError, InvalidRequestError } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import {
  context,
  contextFromTraceparent,
  createTelemetry,
  InMemorySpans,
  type LogLevel,
  ROOT_CONTEXT,
  type Telemetry,
  trace,
  traceparentOf,
  withSpan,
} from './index.ts';

interface Lines {
  readonly telemetry: Telemetry;
  readonly lines: () => Record<string, unknown>[];
}

function withLines(options: { logLevel?: LogLevel } = {}): Lines {
  const written: string[] = [];
  const telemetry = createTelemetry({
    service: 'supervisor',
    logStream: { write: (line: string) => void written.push(line) },
    ...options,
  });
  return { telemetry, lines: () => written.map((line) => JSON.parse(line)) };
}

describe('spans', () => {
  it('name their service when several share a process (SYS-1)', async () => {
    const spans = new InMemorySpans();
    const make = (service: string) =>
      createTelemetry({ service, logLevel: 'silent', spanProcessors: [spans] });
    const supervisor = make('supervisor');
    const meter = make('execution-meter');
    await withSpan(supervisor.tracer, 'outer', {}, () =>
      withSpan(meter.tracer, 'inner', { attributes: { 'writ.run_id': 'run_1' } }, () => 1),
    );
    const [inner, outer] = spans.spans();
    expect(inner).toMatchObject({
      name: 'inner',
      service: 'execution-meter',
      attributes: { 'writ.run_id': 'run_1' },
      status: { code: 'unset' },
    });
    expect(outer).toMatchObject({ name: 'outer', service: 'supervisor' });
    expect(inner?.parentSpanId).toBe(outer?.spanId);
    expect(spans.spans(outer?.traceId)).toHaveLength(2);
    expect(spans.spans('other')).toHaveLength(0);
    expect(outer).not.toHaveProperty('parentSpanId');
  });

  it('continue the trace of a traceparent header (SYS-1)', async () => {
    const spans = new InMemorySpans();
    const { tracer } = createTelemetry({
      service: 'a',
      logLevel: 'silent',
      spanProcessors: [spans],
    });
    const header = await withSpan(tracer, 'client', {}, () => traceparentOf());
    expect(header).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    await withSpan(tracer, 'server', { parent: contextFromTraceparent(header) }, () => 0);
    const [client, server] = spans.spans();
    expect(server).toMatchObject({ traceId: client?.traceId, parentSpanId: client?.spanId });
  });

  it('ignore a malformed traceparent (SYS-1)', () => {
    for (const bad of [undefined, '', 'nonsense', `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`]) {
      expect(contextFromTraceparent(bad, ROOT_CONTEXT)).toBe(ROOT_CONTEXT);
    }
    expect(traceparentOf(ROOT_CONTEXT)).toBeUndefined();
  });

  it('record the reason of a WritError, but only the class of any other error', async () => {
    const spans = new InMemorySpans();
    const { tracer } = createTelemetry({
      service: 'a',
      logLevel: 'silent',
      spanProcessors: [spans],
    });
    const named = new InvalidRequestError('INVALID_ID', 'run_id is malformed.');
    await expect(withSpan(tracer, 'x', {}, () => Promise.reject(named))).rejects.toBe(named);
    const other = new TypeError('password=hunter2');
    await expect(
      withSpan(tracer, 'y', {}, () => {
        throw other;
      }),
    ).rejects.toBe(other);
    const [first, second] = spans.spans();
    expect(first).toMatchObject({
      status: { code: 'error', message: 'run_id is malformed.' },
      attributes: { 'error.type': 'INVALID_ID' },
    });
    expect(second).toMatchObject({
      status: { code: 'error', message: 'TypeError' },
      attributes: { 'error.type': 'TypeError' },
    });
    expect(JSON.stringify(second)).not.toContain('hunter2');
  });

  it('are active for awaited code inside, but not outside', async () => {
    const { tracer } = createTelemetry({ service: 'a', logLevel: 'silent' });
    await withSpan(tracer, 'x', {}, async (span) => {
      await new Promise(setImmediate);
      expect(trace.getSpan(context.active())).toBe(span);
    });
    expect(trace.getSpan(context.active())).toBeUndefined();
  });

  it('are kept up to the capacity, dropping the oldest first', async () => {
    const spans = new InMemorySpans(2);
    const { tracer } = createTelemetry({
      service: 'a',
      logLevel: 'silent',
      spanProcessors: [spans],
    });
    for (const name of ['1', '2', '3']) await withSpan(tracer, name, {}, () => 0);
    expect(spans.spans().map(({ name }) => name)).toEqual(['2', '3']);
    spans.clear();
    expect(spans.spans()).toEqual([]);
  });
});

describe('log lines', () => {
  it('carry the service and the ids of the active span (SYS-1)', async () => {
    const { telemetry, lines } = withLines();
    telemetry.log.info({ run_id: 'run_1' }, 'outside');
    await withSpan(telemetry.tracer, 'x', {}, (span) => {
      telemetry.log.warn('inside');
      return span.spanContext();
    });
    const [outside, inside] = lines();
    expect(outside).toMatchObject({
      service: 'supervisor',
      level: 'info',
      run_id: 'run_1',
      msg: 'outside',
    });
    expect(outside).not.toHaveProperty('trace_id');
    expect(inside).toMatchObject({
      level: 'warn',
      trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
  });

  it('never contain a secret, at the root or in nested fields', () => {
    const { telemetry, lines } = withLines();
    telemetry.log.info({
      token: 'hunter2',
      headers: { authorization: 'Bearer hunter2', 'x-api-key': 'hunter2' },
      call: { request: { writ: 'hunter2', metadata: { key: 'hunter2' } } },
      call_id: 'c1',
    });
    telemetry.log.child({ peer: { token: 'hunter2' } }).info('child');
    telemetry.log.error({
      err: Object.assign(new InternalError('INTERNAL', 'x'), {
        headers: { Authorization: 'hunter2' },
      }),
    });
    expect(JSON.stringify(lines())).not.toContain('hunter2');
    expect(lines()[0]).toMatchObject({ token: '[redacted]', call_id: 'c1' });
  });

  it('are absent when silent', () => {
    const { telemetry, lines } = withLines({ logLevel: 'silent' });
    telemetry.log.fatal('x');
    expect(lines()).toEqual([]);
  });
});

describe('the collector', () => {
  it('is optional: without one the traceparent is propagated and log lines have ids (SYS-1)', async () => {
    const { telemetry, lines } = withLines();
    expect(telemetry).toMatchObject({ traces: false, metrics: { enabled: false } });
    const client = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    await withSpan(telemetry.tracer, 'x', { parent: contextFromTraceparent(client) }, () => {
      telemetry.log.info('x');
      expect(traceparentOf()).toBe(client);
    });
    expect(lines()[0]).toMatchObject({ trace_id: 'a'.repeat(32) });
    const own = await withSpan(telemetry.tracer, 'y', {}, () => traceparentOf());
    expect(own).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  });

  it('does not cause exporter packages to be loaded before the first export', () => {
    const script = `
      const { createTelemetry } = await import(${JSON.stringify(new URL('./index.ts', import.meta.url).href)});
      createTelemetry({ service: 'a', otlp: { traces: { endpoint: 'http://127.0.0.1:1', protocol: 'grpc' } } });
      const { createRequire } = await import('node:module');
      const loaded = Object.keys(createRequire(process.cwd() + '/').cache);
      console.log(loaded.some((file) => file.includes('@grpc/grpc-js')));`;
    const out = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    expect(out.trim()).toBe('false');
  });
});
