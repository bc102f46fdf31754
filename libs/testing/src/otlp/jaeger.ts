import type { ReceivedSpan } from './otlp-receiver.ts';

/** A span reference in Jaeger's model. */
interface JaegerReference {
  readonly refType: 'CHILD_OF' | 'FOLLOWS_FROM';
  readonly traceID: string;
  readonly spanID: string;
}

/** A span in Jaeger's model. */
interface JaegerSpan {
  readonly traceID: string;
  readonly spanID: string;
  readonly operationName: string;
  readonly references: readonly JaegerReference[];
  /** Microseconds since the epoch. */
  readonly startTime: number;
  readonly duration: number;
  readonly tags: Readonly<Record<string, unknown>>;
  readonly processID: string;
}

/** A trace in Jaeger's model, as Jaeger's UI and JSON export present it. */
export interface JaegerTrace {
  readonly traceID: string;
  readonly spans: readonly JaegerSpan[];
  readonly processes: Readonly<
    Record<
      string,
      { readonly serviceName: string; readonly tags: Readonly<Record<string, unknown>> }
    >
  >;
}

/**
 * Converts the spans of a trace to Jaeger's model: one process per resource, the parent as CHILD_OF and
 * links as FOLLOWS_FROM.
 */
export function toJaeger(traceId: string, received: readonly ReceivedSpan[]): JaegerTrace {
  const processes: Record<string, JaegerTrace['processes'][string]> = {};
  const known = new Map<string, string>();
  const processOf = ({ service, resource }: ReceivedSpan): string => {
    const { 'service.name': _, ...tags } = resource;
    const key = JSON.stringify([service, tags]);
    const processID = known.get(key) ?? `p${known.size + 1}`;
    known.set(key, processID);
    processes[processID] = { serviceName: service, tags };
    return processID;
  };
  const spans = received
    .filter((span) => span.traceId === traceId)
    .map((span) => ({
      traceID: span.traceId,
      spanID: span.spanId,
      operationName: span.name,
      references: [
        ...(span.parentSpanId === '' ? [] : [reference('CHILD_OF', traceId, span.parentSpanId)]),
        ...span.links.map((link) => reference('FOLLOWS_FROM', link.traceId, link.spanId)),
      ],
      startTime: span.startedAt,
      duration: span.durationUs,
      tags: span.attributes,
      processID: processOf(span),
    }));
  return { traceID: traceId, spans, processes };
}

function reference(
  refType: JaegerReference['refType'],
  traceID: string,
  spanID: string,
): JaegerReference {
  return { refType, traceID, spanID };
}
