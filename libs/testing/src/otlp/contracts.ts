import { fileURLToPath } from 'node:url';
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

/** An OTLP signal. */
export type Signal = 'traces' | 'metrics' | 'logs';

const SERVICES: Readonly<Record<Signal, string>> = {
  traces: 'trace.v1.TraceService',
  metrics: 'metrics.v1.MetricsService',
  logs: 'logs.v1.LogsService',
};

/** The gRPC services of an OTLP collector. */
export function otlpServices(): Readonly<Record<Signal, ServiceDefinition>> {
  const loaded = loadSync(
    Object.values(SERVICES).map((name) => {
      const [packageName = ''] = name.split('.');
      return `opentelemetry/proto/collector/${packageName}/v1/${packageName}_service.proto`;
    }),
    {
      includeDirs: [fileURLToPath(new URL('./protos', import.meta.url))],
      longs: String,
      defaults: true,
      arrays: true,
      oneofs: true,
    },
  );
  const of = (signal: Signal) =>
    loaded[`opentelemetry.proto.collector.${SERVICES[signal]}`] as ServiceDefinition;
  return { traces: of('traces'), metrics: of('metrics'), logs: of('logs') };
}

/** The definition of a service's `Export` method. */
export function exportMethod(service: ServiceDefinition): MethodDefinition<unknown, unknown> {
  const { Export: method } = service;
  if (method === undefined) throw new Error('The OTLP service has no Export method.');
  return method;
}

/** OTLP's `AnyValue`. */
interface AnyValue {
  readonly value?: string;
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: string;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values: readonly AnyValue[] };
  readonly kvlistValue?: { readonly values: readonly KeyValue[] };
}

/** OTLP's `KeyValue`. */
export interface KeyValue {
  readonly key: string;
  readonly value: AnyValue | null;
}

/** Converts attributes to plain values; 64-bit integers become strings. */
export function plain(attributes: readonly KeyValue[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plainValue(value)]));
}

/** Converts one value to a plain value. */
export function plainValue(value: AnyValue | null): unknown {
  switch (value?.value) {
    case 'stringValue':
      return value.stringValue;
    case 'boolValue':
      return value.boolValue;
    case 'intValue':
      return value.intValue;
    case 'doubleValue':
      return value.doubleValue;
    case 'arrayValue':
      return value.arrayValue?.values.map(plainValue);
    case 'kvlistValue':
      return plain(value.kvlistValue?.values ?? []);
    default:
      return undefined;
  }
}

/** An export of spans. */
export interface TraceExport {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

/** A decoded OTLP span. */
export interface OtlpSpan {
  readonly traceId: Buffer;
  readonly spanId: Buffer;
  readonly parentSpanId: Buffer;
  readonly name: string;
  readonly kind: number | string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly KeyValue[];
  readonly links: readonly { readonly traceId: Buffer; readonly spanId: Buffer }[];
  readonly status: { readonly code: number | string } | null;
}

/** An export of metrics. */
export interface MetricExport {
  readonly resourceMetrics: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeMetrics: readonly {
      readonly metrics: readonly {
        readonly name: string;
        readonly unit: string;
        readonly gauge?: { readonly dataPoints: readonly OtlpPoint[] };
        readonly sum?: { readonly dataPoints: readonly OtlpPoint[] };
        readonly histogram?: { readonly dataPoints: readonly OtlpPoint[] };
      }[];
    }[];
  }[];
}

/** One series of a metric. */
export interface OtlpPoint {
  readonly attributes: readonly KeyValue[];
  readonly asInt?: string;
  readonly asDouble?: number;
  /** Present for histograms. */
  readonly count?: string;
}

/** An export of log records. */
export interface LogExport {
  readonly resourceLogs: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeLogs: readonly {
      readonly logRecords: readonly {
        readonly severityText: string;
        readonly body: AnyValue | null;
        readonly attributes: readonly KeyValue[];
        readonly traceId: Buffer;
        readonly spanId: Buffer;
      }[];
    }[];
  }[];
}
