import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { ResourceMetrics } from '@opentelemetry/sdk-metrics';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import { LazyExporter } from './lazy-exporter.ts';
import type { OtlpTarget } from './targets.ts';

/** Timeout of one batch, ms, which limits the delay of a shutdown by an unresponsive collector. */
const TIMEOUT_MS = 3_000;

/** Creates the exporter of spans. */
export function traceExporter(target: OtlpTarget, log: Logger): LazyExporter<ReadableSpan[]> {
  const { endpoint, protocol } = target;
  const load = async () => {
    const { OTLPTraceExporter } = await (protocol === 'grpc'
      ? import('@opentelemetry/exporter-trace-otlp-grpc')
      : import('@opentelemetry/exporter-trace-otlp-proto'));
    return new OTLPTraceExporter(settings(target));
  };
  return new LazyExporter({ signal: 'traces', endpoint, load, log });
}

/** Creates the exporter of metrics. */
export function metricExporter(
  target: OtlpTarget,
  log: Logger,
): LazyExporter<ResourceMetrics> & {
  forceFlush(): Promise<void>;
} {
  const { endpoint, protocol } = target;
  const load = async () => {
    const { OTLPMetricExporter } = await (protocol === 'grpc'
      ? import('@opentelemetry/exporter-metrics-otlp-grpc')
      : import('@opentelemetry/exporter-metrics-otlp-proto'));
    return new OTLPMetricExporter(settings(target));
  };
  return new LazyExporter({ signal: 'metrics', endpoint, load, log });
}

/** Creates the exporter of log records. */
export function logExporter(target: OtlpTarget, log: Logger): LazyExporter<ReadableLogRecord[]> {
  const { endpoint, protocol } = target;
  const load = async () => {
    const { OTLPLogExporter } = await (protocol === 'grpc'
      ? import('@opentelemetry/exporter-logs-otlp-grpc')
      : import('@opentelemetry/exporter-logs-otlp-proto'));
    return new OTLPLogExporter(settings(target));
  };
  return new LazyExporter({ signal: 'logs', endpoint, load, log });
}

function settings({ endpoint }: OtlpTarget): { url: string; timeoutMillis: number } {
  return { url: endpoint, timeoutMillis: TIMEOUT_MS };
}
