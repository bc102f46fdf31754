import { SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ATTR_ERROR_TYPE,
  ATTR_WRIT_DECISION,
  contextFromTraceparent,
  createTelemetry,
  InMemorySpans,
  type Span,
  traceparentOf,
  withSpan,
} from '../index.ts';
import { KeptTraces } from './kept-traces.ts';

function service(name: string, sampleRatio: number) {
  const spans = new InMemorySpans();
  const { tracer } = createTelemetry({
    service: name,
    logLevel: 'silent',
    sampleRatio,
    spanProcessors: [spans],
  });
  /** Handles one call; returns the traceparent that it would propagate. */
  const call = (header: string | undefined, what: (span: Span) => void = () => undefined) =>
    withSpan(tracer, 'call', { parent: contextFromTraceparent(header) }, (span) => {
      what(span);
      return traceparentOf() ?? '';
    });
  return { spans, tracer, call, names: () => spans.spans().map(({ name: of }) => of) };
}

const refuse = (span: Span) => void span.setAttribute(ATTR_ERROR_TYPE, 'BUDGET_EXHAUSTED');
const sampledFlag = (header: string) => header.endsWith('-01');

describe('sampling', () => {
  it('samples about the configured ratio of the traces that start here (SYS-1)', async () => {
    const one = service('one', 0.25);
    for (let count = 0; count < 2_000; count += 1) await one.call(undefined);
    expect(one.spans.spans().length).toBeGreaterThan(350);
    expect(one.spans.spans().length).toBeLessThan(650);
  });

  it('follows the sampled flag of the caller and propagates its own', async () => {
    const one = service('one', 0);
    const yes = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    expect(sampledFlag(await one.call(yes))).toBe(true);
    expect(sampledFlag(await one.call(yes.replace(/1$/, '0')))).toBe(false);
    expect(one.spans.spans()).toHaveLength(1);
  });

  const matters: Record<string, (span: Span) => void> = {
    'an error': (span) => void span.setStatus({ code: SpanStatusCode.ERROR }),
    'a refusal': refuse,
    'an escalation': (span) => void span.setAttribute(ATTR_WRIT_DECISION, 'escalate'),
    'a block': (span) => void span.setAttribute(ATTR_WRIT_DECISION, 'block'),
  };
  for (const [name, mark] of Object.entries(matters)) {
    it(`keeps all spans of a trace with ${name}, including earlier ones (SYS-1)`, async () => {
      const one = service('one', 0);
      const header = await one.call(undefined);
      await one.call(header, mark);
      await one.call(header);
      await one.call(undefined);
      expect(one.spans.spans()).toHaveLength(3);
      expect(new Set(one.spans.spans().map(({ traceId }) => traceId)).size).toBe(1);
    });
  }

  it('does not treat a cancelled watch as an error, nor an approval as a block', async () => {
    const one = service('one', 0);
    await one.call(undefined, (span) => void span.setAttribute(ATTR_ERROR_TYPE, 'CANCELLED'));
    await one.call(undefined, (span) => void span.setAttribute(ATTR_WRIT_DECISION, 'approve'));
    expect(one.spans.spans()).toEqual([]);
  });

  it('marks a kept trace for other services, which then export their held spans (SYS-1)', async () => {
    const worker = service('worker', 0);
    const meter = service('meter', 0);
    const first = await worker.call(undefined);
    await meter.call(first);
    await meter.call(first);
    await worker.call(first, refuse);
    expect(meter.spans.spans()).toEqual([]);
    const second = await worker.call(first);
    expect(sampledFlag(second)).toBe(true);
    await meter.call(second);
    expect(meter.spans.spans()).toHaveLength(3);
  });
});

describe('held spans', () => {
  const span = (traceId: string) =>
    ({ spanContext: () => ({ traceId, spanId: '1', traceFlags: TraceFlags.NONE }) }) as never;

  it('stay within their limits and are exported at most once', () => {
    const step = fc.record({
      trace: fc.integer({ min: 0, max: 9 }),
      keep: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const traces = new KeptTraces({ maxSpans: 20, maxSpansPerTrace: 5, maxKept: 3 });
        let held = 0;
        let given = 0;
        for (const { trace, keep } of steps) {
          const id = String(trace);
          if (keep) {
            const out = traces.keep(id);
            expect(out.every((one) => one.spanContext().traceId === id)).toBe(true);
            expect(out.length).toBeLessThanOrEqual(5);
            given += out.length;
            expect(traces.isKept(id)).toBe(true);
            expect(traces.keep(id)).toEqual([]);
          } else {
            traces.hold(span(id));
            held += 1;
          }
          expect(traces.size).toBeLessThanOrEqual(20);
          expect(given + traces.size).toBeLessThanOrEqual(held);
        }
      }),
    );
  });
});
