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

const recordInto = (received: BusMessage[]) => ({
  handler: async (given: BusMessage) => void received.push(given),
  handleAll: async (given: readonly BusMessage[]) => void received.push(...given),
});

describe('the trace of an event', () => {
  it('connects the spans of the recorded fact, the publisher and the subscriber (SYS-1, HK-2)', async () => {
    const meter = service('execution-meter');
    const supervisor = service('supervisor');
    const header = await withSpan(meter.tracer, 'fact', {}, () => traceparentOf());
    const received: BusMessage[] = [];
    const { handler } = tracedHandlers(supervisor, 'timeline', recordInto(received));
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
    expect(received[0]?.headers.traceparent).toContain(published?.spanId);
  });

  it('has separate publish and process spans for each event of a batch (SYS-1)', async () => {
    const meter = service('execution-meter');
    const supervisor = service('supervisor');
    const headers = await Promise.all(
      ['one', 'two'].map((name) => withSpan(meter.tracer, name, {}, () => traceparentOf())),
    );
    const received: BusMessage[] = [];
    const { handleAll } = tracedHandlers(supervisor, 'timeline', recordInto(received));
    await tracedPublishAll(meter, handleAll)(headers.map((header) => message(header)));
    expect(received).toHaveLength(2);
    for (const [index, name] of ['one', 'two'].entries()) {
      const [fact, ...others] = spans
        .spans()
        .filter(({ traceId }) => headers[index]?.includes(traceId));
      expect(fact?.name).toBe(name);
      expect(others.map(({ name: spanName }) => spanName).sort()).toEqual([
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
    const closed = new UnavailableError('BUS_CLOSED', 'The bus is closed.');
    const fail = tracedPublish(meter, () => Promise.reject(closed));
    await expect(fail(message(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`))).rejects.toBe(closed);
    expect(spans.spans()[0]).toMatchObject({ attributes: { 'error.type': 'BUS_CLOSED' } });
  });

  it('adds no wrapper if neither spans nor metrics are exported', () => {
    const quiet = createTelemetry({ service: 'a', logLevel: 'silent' });
    const handlers = recordInto([]);
    expect(tracedPublish(quiet, handlers.handler)).toBe(handlers.handler);
    expect(tracedPublishAll(quiet, handlers.handleAll)).toBe(handlers.handleAll);
    expect(tracedHandlers(quiet, 'timeline', handlers)).toEqual(handlers);
  });
});
