import { NotFoundError } from '@writ/kernel';
import { context, type InMemorySpans, type RecordedSpan, trace, withSpan } from '@writ/telemetry';
import { describe, expect, it } from 'vitest';
import { ALLOWED, clientOf, drained, rejection, START, start, TRANSPORTS } from './fixture.ts';

describe.each(TRANSPORTS)('over %s', (transport) => {
  it('records one trace: caller, client span, server span, spans of the handler (SYS-1)', async () => {
    const { client, spans, telemetry } = await start(transport, {
      startRun: async (_request, call) =>
        withSpan(telemetry.tracer, 'work', {}, () => ({ run: { runId: call.traceparent } })),
    });
    const caller = client();
    const { run } = await withSpan(telemetry.tracer, 'caller', {}, () =>
      caller.startRun(START, { ...ALLOWED, epoch: 3n }),
    );
    const [work, server, clientSide, outer] = await settled(spans, 4);
    const name = 'writ.run.v1.RunService/StartRun';
    expect(clientSide).toMatchObject({ name, kind: 'client', parentSpanId: outer?.spanId });
    expect(server).toMatchObject({
      name,
      kind: 'server',
      traceId: outer?.traceId,
      parentSpanId: clientSide?.spanId,
      status: { code: 'unset' },
      attributes: {
        'rpc.system': 'grpc',
        'rpc.service': 'writ.run.v1.RunService',
        'rpc.method': 'StartRun',
        'rpc.grpc.status_code': 0,
        'writ.tenant': 'acme',
        'writ.epoch': '3',
      },
    });
    expect(work).toMatchObject({ name: 'work', parentSpanId: server?.spanId });
    expect(run?.runId).toBe(`00-${server?.traceId}-${server?.spanId}-01`);
    expect(JSON.stringify(spans.spans())).not.toContain(START.goal);
  });

  it('keeps the trace of a stream across messages and awaits (SYS-1)', async () => {
    const inner = await start(transport, { startRun: async () => ({}) });
    const onward = clientOf(inner.address, inner.telemetry);
    const active: (string | undefined)[] = [];
    const { client, spans, telemetry } = await start(transport, {
      async *watchRun() {
        for (let n = 1n; n <= 3n; n += 1n) {
          active.push(trace.getSpan(context.active())?.spanContext().spanId);
          await onward.startRun(START, ALLOWED);
          yield { event: { sequence: n } };
        }
      },
    });
    const caller = client();
    await withSpan(telemetry.tracer, 'caller', {}, async () => {
      const stream = caller.watchRun({ runId: 'run-1' }, ALLOWED);
      // The reader iterates in another context.
      await context.with(trace.deleteSpan(context.active()), () => drained(stream));
    });
    const [server, clientSide, outer] = await settled(spans, 3);
    expect(clientSide).toMatchObject({ kind: 'client', parentSpanId: outer?.spanId });
    expect(server).toMatchObject({ kind: 'server', parentSpanId: clientSide?.spanId });
    expect(active).toEqual([server?.spanId, server?.spanId, server?.spanId]);
    const onwards = inner.spans.spans(outer?.traceId);
    expect(onwards).toHaveLength(6);
    const parents = onwards
      .filter(({ kind }) => kind === 'client')
      .map((span) => span.parentSpanId);
    expect(parents).toEqual(active);
  });

  it('marks only the client span failed for errors that are not server errors (SYS-1)', async () => {
    const { client, spans } = await start(transport, {
      startRun: async () => {
        throw new NotFoundError('AGENT_NOT_FOUND', 'No such agent.');
      },
      watchRun: () => {
        throw new TypeError('A bug.');
      },
    });
    const caller = client();
    await rejection(caller.startRun(START, ALLOWED));
    await drained(caller.watchRun({ runId: 'run-1' }, ALLOWED));
    const [server, clientSide, faulty] = await settled(spans, 4);
    expect(server).toMatchObject({
      status: { code: 'unset' },
      attributes: { 'error.type': 'AGENT_NOT_FOUND', 'rpc.grpc.status_code': 5 },
    });
    expect(clientSide).toMatchObject({ kind: 'client', status: { code: 'error' } });
    expect(faulty).toMatchObject({ kind: 'server', status: { code: 'error' } });
  });

  it('ends the spans of a stream that is cancelled early (SYS-1)', async () => {
    const { client, spans } = await start(transport, {
      async *watchRun() {
        for (;;) yield {};
      },
    });
    for await (const _ of client().watchRun({ runId: 'run-1' }, ALLOWED)) break;
    const ended = await settled(spans, 2);
    expect(ended.map(({ kind }) => kind).sort()).toEqual(['client', 'server']);
  });
});

it('continues a valid traceparent and ignores a malformed one (SYS-1)', async () => {
  const { address, spans } = await start('edge', { startRun: async () => ({}) });
  const call = (traceparent: string) =>
    fetch(`http://${address}/writ.run.v1.RunService/StartRun`, {
      method: 'POST',
      headers: { ...ALLOWED.headers, 'content-type': 'application/json', traceparent },
      body: JSON.stringify(START),
    });
  const traceId = 'a'.repeat(32);
  const parentSpanId = 'b'.repeat(16);
  expect((await call(`00-${traceId}-${parentSpanId}-01`)).status).toBe(200);
  expect((await call('nonsense')).status).toBe(200);
  const [foreign, fresh] = await settled(spans, 2);
  expect(foreign).toMatchObject({
    traceId,
    parentSpanId,
    attributes: { 'rpc.system': 'connect_rpc' },
  });
  expect(fresh).not.toHaveProperty('parentSpanId');
});

/** The first `count` finished spans; a server span may end shortly after the response. */
async function settled(spans: InMemorySpans, count: number): Promise<readonly RecordedSpan[]> {
  while (spans.spans().length < count) await new Promise(setImmediate);
  return spans.spans();
}
