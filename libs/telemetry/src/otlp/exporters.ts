import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import {
  AggregationTemporality,
  InstrumentType,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics';
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

/** A {@link LazyExporter} of metrics. */
class LazyMetricExporter extends LazyExporter<ResourceMetrics> {
  /**
   * Returns delta for gauges, so that an export contains only the values of the last read: with cumulative temporality,
   * the SDK repeats the last value of every label set that was ever read. The temporality of a gauge is not exported.
   */
  selectAggregationTemporality(type: InstrumentType): AggregationTemporality {
    return type === InstrumentType.OBSERVABLE_GAUGE
      ? AggregationTemporality.DELTA
      : AggregationTemporality.CUMULATIVE;
  }
}

/** Creates the exporter of metrics. */
export function metricExporter(target: OtlpTarget, log: Logger): LazyMetricExporter {
  const { endpoint, protocol } = target;
  const load = async () => {
    const { OTLPMetricExporter } = await (protocol === 'grpc'
      ? import('@opentelemetry/exporter-metrics-otlp-grpc')
      : import('@opentelemetry/exporter-metrics-otlp-proto'));
    return new OTLPMetricExporter(settings(target));
  };
  return new LazyMetricExporter({ signal: 'metrics', endpoint, load, log });
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
