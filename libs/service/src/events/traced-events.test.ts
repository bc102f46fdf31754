import type { BusMessage } from '@writ/bus';
import { UnavailableError } from '@writ/kernel';
import { createTelemetry, InMemorySpans, traceparentOf, withSpan } from '@writ/telemetry';
import { beforeEach, describe, expect, it } from 'vitest';
import { tracedHandlers, tracedPublish, tracedPublishAll } from './traced-events.ts';

let spans: InMemorySpans;
let service: (name: string) => ReturnType<typeof createTelemetry>;

beforeEach(() => {
  spans = new InMemorySpans();
  service = (name) =>
    createTelemetry({
      service: name,
      logLevel: 'silent',
      spanProcessors: [spans],
      internalSpans: true,
    });
});

const message = (traceparent?: string): BusMessage => ({
  eventId: 'evt_1',
  subject: 'writ.hooks.v1.acme.run_1.a.RUN_START',
  payload: new Uint8Array(),
  headers: traceparent === undefined ? {} : { traceparent },
});

const taking = (taken: BusMessage[]) => ({
  handler: async (given: BusMessage) => void taken.push(given),
  handleAll: async (given: readonly BusMessage[]) => void taken.push(...given),
});

describe('the trace of an event', () => {
  it('connects the span of the recorded fact, the publisher and the subscriber (SYS-1, HK-2)', async () => {
    const meter = service('execution-meter');
    const supervisor = service('supervisor');
    const header = await withSpan(meter.tracer, 'fact', {}, () => traceparentOf());
    const taken: BusMessage[] = [];
    const { handler } = tracedHandlers(supervisor, 'timeline', taking(taken));
    await tracedPublish(meter, handler)(message(header));
    const [fact, handled, published] = spans.spans();
    expect(published).toMatchObject({
      name: 'publish RUN_START',
      kind: 'producer',
      service: 'execution-meter',
      parentSpanId: fact?.spanId,
    });
    expect(handled).toMatchObject({
      name: 'process RUN_START',
      kind: 'consumer',
      service: 'supervisor',
      traceId: fact?.traceId,
      parentSpanId: published?.spanId,
      attributes: { 'messaging.consumer.group.name': 'timeline', 'writ.event_id': 'evt_1' },
    });
    expect(taken[0]?.headers.traceparent).toContain(published?.spanId);
  });

  it('has separate publish and process spans for each event of a batch (SYS-1)', async () => {
    const meter = service('execution-meter');
    const supervisor = service('supervisor');
    const headers = await Promise.all(
      ['one', 'two'].map((name) => withSpan(meter.tracer, name, {}, () => traceparentOf())),
    );
    const taken: BusMessage[] = [];
    const { handleAll } = tracedHandlers(supervisor, 'timeline', taking(taken));
    await tracedPublishAll(meter, handleAll)(headers.map((header) => message(header)));
    expect(taken).toHaveLength(2);
    for (const [index, name] of ['one', 'two'].entries()) {
      const [fact, ...others] = spans
        .spans()
        .filter(({ traceId }) => headers[index]?.includes(traceId));
      expect(fact?.name).toBe(name);
      expect(others.map(({ name: way }) => way).sort()).toEqual([
        'process RUN_START',
        'publish RUN_START',
      ]);
    }
  });

  it('is absent for an event without a trace, and contains the error of a failed publish', async () => {
    const meter = service('execution-meter');
    const seen: BusMessage[] = [];
    await tracedPublish(meter, async (given) => void seen.push(given))(message());
    expect(seen).toEqual([message()]);
    expect(spans.spans()).toEqual([]);
    const away = new UnavailableError('BUS_CLOSED', 'The bus is closed.');
    const fail = tracedPublish(meter, () => Promise.reject(away));
    await expect(fail(message(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`))).rejects.toBe(away);
    expect(spans.spans()[0]).toMatchObject({ attributes: { 'error.type': 'BUS_CLOSED' } });
  });

  it('adds no wrapper if neither spans nor metrics are exported', () => {
    const quiet = createTelemetry({ service: 'a', logLevel: 'silent' });
    const taken = taking([]);
    expect(tracedPublish(quiet, taken.handler)).toBe(taken.handler);
    expect(tracedPublishAll(quiet, taken.handleAll)).toBe(taken.handleAll);
    expect(tracedHandlers(quiet, 'timeline', taken)).toEqual(taken);
  });
});
