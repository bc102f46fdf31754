export type { Context, Link, Span, SpanContext, SpanOptions, Tracer } from '@opentelemetry/api';
export { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
export type { SpanProcessor } from '@opentelemetry/sdk-trace';
export type { Logger } from 'pino';
export * from './attributes.ts';
export { contextFromTraceparent, installContextManager, traceparentOf } from './context.ts';
export * from './genai.ts';
export type { RecordedSpan } from './in-memory-spans.ts';
export { InMemorySpans, toRecordedSpan } from './in-memory-spans.ts';
export type { LoggerOptions, LogLevel } from './logger.ts';
export { createLogger, LOG_LEVELS } from './logger.ts';
export { LabelCaps, type Labels, OTHER } from './metrics/label-caps.ts';
export type { Metrics, Observation } from './metrics/metrics.ts';
export { prometheusName } from './metrics/prometheus-name.ts';
export { METRICS, type MetricKey } from './metrics/table.ts';
export {
  OTLP_PROTOCOLS,
  type OtlpProtocol,
  type OtlpTarget,
  type OtlpTargets,
} from './otlp/targets.ts';
export { outageFields } from './outage-lines.ts';
export type { Telemetry, TelemetryOptions } from './telemetry.ts';
export { createTelemetry } from './telemetry.ts';
export type { WithSpanOptions } from './with-span.ts';
export { recordError, withSpan } from './with-span.ts';
