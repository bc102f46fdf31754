import { type Attributes, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';

/** One finished span as plain data. */
export interface RecordedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Absent on the first span of a trace. */
  readonly parentSpanId?: string;
  readonly name: string;
  /** The service that created the span (`service.name`). */
  readonly service: string;
  readonly kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  readonly attributes: Attributes;
  readonly status: { readonly code: 'unset' | 'ok' | 'error'; readonly message?: string };
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly events: readonly { readonly name: string; readonly attributes: Attributes }[];
  readonly startedAt: Date;
  /** Milliseconds, with fractions. */
  readonly durationMs: number;
}

const KINDS: Readonly<Record<SpanKind, RecordedSpan['kind']>> = {
  [SpanKind.INTERNAL]: 'internal',
  [SpanKind.SERVER]: 'server',
  [SpanKind.CLIENT]: 'client',
  [SpanKind.PRODUCER]: 'producer',
  [SpanKind.CONSUMER]: 'consumer',
};

const STATUS_CODES: Readonly<Record<SpanStatusCode, RecordedSpan['status']['code']>> = {
  [SpanStatusCode.UNSET]: 'unset',
  [SpanStatusCode.OK]: 'ok',
  [SpanStatusCode.ERROR]: 'error',
};

/**
 * Stores finished spans in memory, for tests (SYS-1). One instance can be shared by the services of a process; every
 * span names its service. Keeps the newest `capacity` spans.
 */
export class InMemorySpans implements SpanProcessor {
  readonly #capacity: number;
  #spans: RecordedSpan[] = [];

  constructor(capacity = 10_000) {
    this.#capacity = capacity;
  }

  /** The finished spans in order of their end, optionally of one trace. */
  spans(traceId?: string): readonly RecordedSpan[] {
    return this.#spans.filter((span) => traceId === undefined || span.traceId === traceId);
  }

  /** Deletes all recorded spans. */
  clear(): void {
    this.#spans = [];
  }

  onStart(): void {
    // Only finished spans are stored.
  }

  onEnd(span: ReadableSpan): void {
    this.#spans.push(toRecordedSpan(span));
    if (this.#spans.length > this.#capacity) this.#spans.shift();
  }

  async forceFlush(): Promise<void> {
    // Nothing is buffered.
  }

  async shutdown(): Promise<void> {
    // Recorded spans stay readable after the services have stopped.
  }
}

/** Converts an ended span to plain data. */
export function toRecordedSpan(span: ReadableSpan): RecordedSpan {
  const { traceId, spanId } = span.spanContext();
  const parentSpanId = span.parentSpanContext?.spanId;
  return {
    traceId,
    spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name: span.name,
    service: String(span.resource.attributes['service.name'] ?? ''),
    kind: KINDS[span.kind],
    attributes: { ...span.attributes },
    status: {
      code: STATUS_CODES[span.status.code],
      ...(span.status.message === undefined ? {} : { message: span.status.message }),
    },
    links: span.links.map(({ context }) => ({ traceId: context.traceId, spanId: context.spanId })),
    events: span.events.map(({ name, attributes }) => ({ name, attributes: { ...attributes } })),
    startedAt: new Date(milliseconds(span.startTime)),
    durationMs: milliseconds(span.duration),
  };
}

function milliseconds([seconds, nanos]: readonly [number, number]): number {
  return seconds * 1000 + nanos / 1e6;
}
