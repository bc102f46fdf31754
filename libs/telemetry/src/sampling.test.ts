import { SpanStatusCode } from '@opentelemetry/api';
import { expect, it } from 'vitest';
import {
  contextFromTraceparent,
  createTelemetry,
  InMemorySpans,
  type Span,
  traceparentOf,
  withSpan,
} from './index.ts';

function service(name: string, sampleRatio: number) {
  const spans = new InMemorySpans();
  const { tracer } = createTelemetry({
    service: name,
    logLevel: 'silent',
    sampleRatio,
    spanProcessors: [spans],
  });
  /** Handles one call; returns the traceparent that the service would propagate. */
  const call = (header: string | undefined, what: (span: Span) => void = () => undefined) =>
    withSpan(tracer, 'call', { parent: contextFromTraceparent(header) }, (span) => {
      what(span);
      return traceparentOf() ?? '';
    });
  return { spans, call };
}

const sampledFlag = (header: string) => header.endsWith('-01');

it('samples about the configured ratio of the traces that start in the service (SYS-1)', async () => {
  const one = service('one', 0.25);
  for (let count = 0; count < 2_000; count += 1) await one.call(undefined);
  expect(one.spans.spans().length).toBeGreaterThan(350);
  expect(one.spans.spans().length).toBeLessThan(650);
});

it('adopts the sampled flag of the caller and propagates it (SYS-1)', async () => {
  const one = service('one', 0);
  const yes = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  expect(sampledFlag(await one.call(yes))).toBe(true);
  expect(sampledFlag(await one.call(yes.replace(/1$/, '0')))).toBe(false);
  expect(one.spans.spans()).toHaveLength(1);
});

it('propagates the trace id of unsampled calls, because log lines contain it (SYS-1)', async () => {
  const worker = service('worker', 0);
  const meter = service('meter', 1);
  const first = await worker.call(undefined, (span) =>
    span.setStatus({ code: SpanStatusCode.ERROR }),
  );
  const second = await meter.call(first);
  expect(sampledFlag(first)).toBe(false);
  expect(sampledFlag(second)).toBe(false);
  expect(second.split('-')[1]).toBe(first.split('-')[1]);
  expect([...worker.spans.spans(), ...meter.spans.spans()]).toEqual([]);
});
