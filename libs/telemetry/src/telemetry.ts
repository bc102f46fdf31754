import { hostname } from 'node:os';
import type { Tracer } from '@opentelemetry/api';
import { parseKeyPairsIntoRecord } from '@opentelemetry/core';
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs';
import {
  type IMetricReader,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { settlesWithin } from '@writ/kernel';
import { type DestinationStream, destination, type Logger } from 'pino';
import { installContextManager } from './context.ts';
import { createLogger, type LogLevel } from './logger.ts';
import { observeCaches } from './metrics/caches.ts';
import { observeEventLoop } from './metrics/event-loop.ts';
import { createMetrics, type Metrics, NO_METRICS } from './metrics/metrics.ts';
import { logExporter, metricExporter, traceExporter } from './otlp/exporters.ts';
import { recordLines } from './otlp/log-records.ts';
import type { OtlpTargets } from './otlp/targets.ts';
import { PassThroughTracer } from './pass-through-tracer.ts';

/** Options of {@link createTelemetry}. */
export interface TelemetryOptions {
  /** The service's name in traces, metrics and logs, such as `execution-meter`. */
  readonly service: string;
  readonly version?: string;
  /** Further attributes of the resource, in the form of OTEL_RESOURCE_ATTRIBUTES. */
  readonly resource?: string;
  /** Default `info`; `silent` for tests. */
  readonly logLevel?: LogLevel;
  /** Destination of the log; default standard error. */
  readonly logStream?: DestinationStream;
  /** The collectors; by default nothing is exported. */
  readonly otlp?: OtlpTargets;
  /** Sampling ratio of traces that start here, from 0 to 1. Default 1. */
  readonly sampleRatio?: number;
  /**
   * Whether internal work has spans: commits, publishing and processing of events, lookups of keys and tools, and
   * the client's side of calls within the process. Default false, so that a trace shows what the agents of a run do.
   */
  readonly internalSpans?: boolean;
  /** Additional span processors, such as {@link InMemorySpans}. */
  readonly spanProcessors?: readonly SpanProcessor[];
  /** Additional metric readers, which select the temporality themselves. */
  readonly metricReaders?: readonly IMetricReader[];
}

/** The logger, tracer and metrics of one service. Every service of a process has its own (SYS-1). */
export interface Telemetry {
  readonly log: Logger;
  readonly tracer: Tracer;
  /** Whether spans are recorded. When false, callers need not build attributes. */
  readonly traces: boolean;
  /** Whether internal work has spans, too. */
  readonly internalSpans: boolean;
  readonly metrics: Metrics;
  /** Exports buffered data, for at most five seconds. Never rejects: an unavailable collector is logged. */
  flush(): Promise<void>;
  /**
   * Exports buffered data, for at most five seconds, and stops exporting. Idempotent; never rejects.
   */
  shutdown(): Promise<void>;
}

/** Maximum time for the final export, ms. */
const SHUTDOWN_MS = 5_000;
/** Maximum queued spans, and log records, while the collector is unavailable. */
const MAX_QUEUED = 8_192;
const BATCH = {
  scheduledDelayMillis: 1_000,
  exportTimeoutMillis: SHUTDOWN_MS,
  maxQueueSize: MAX_QUEUED,
};
const METRIC_INTERVAL_MS = 60_000;

interface Provider {
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}

/**
 * Creates the logger, tracer and metrics of one service (SYS-1). The context manager is the only global state,
 * so that every service of a shared process has its own `service.name`. A signal without a collector has no
 * overhead; trace ids are still written to logs and `traceparent`.
 */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  installContextManager();
  const { service, version, logLevel, otlp = {} } = options;
  const stream = options.logStream ?? destination(2);
  const naming = {
    service,
    ...(version === undefined ? {} : { version }),
    ...(logLevel === undefined ? {} : { level: logLevel }),
  };
  // Log lines of the exporters are not exported themselves.
  const ownLog = createLogger({ ...naming, stream });
  const resource = resourceOf(options);
  const logs = otlp.logs && logProvider(resource, logExporter(otlp.logs, ownLog));
  const log =
    logs === undefined ? ownLog : createLogger({ ...naming, stream: recordLines(stream, logs) });
  const traces = traceProvider(options, resource, ownLog);
  const metering = meterProvider(options, resource, ownLog);
  const metrics =
    metering === undefined
      ? NO_METRICS
      : createMetrics(metering.getMeter('writ', version), service);
  const stopObserving = observeEventLoop(metrics);
  observeCaches(metrics);
  const providers = [traces, metering, logs].filter((provider) => provider !== undefined);
  let stopping: Promise<void> | undefined;
  return {
    log,
    tracer: traces?.getTracer('writ', version) ?? new PassThroughTracer(),
    traces: traces !== undefined,
    internalSpans: traces !== undefined && options.internalSpans === true,
    metrics,
    flush: () => within(providers, (provider) => provider.forceFlush()),
    shutdown: () => {
      stopObserving();
      stopping ??= within(providers, (provider) => provider.shutdown());
      return stopping;
    },
  };
}

function traceProvider(
  { otlp, spanProcessors = [], sampleRatio = 1 }: TelemetryOptions,
  resource: Resource,
  log: Logger,
): TracerProvider | undefined {
  const processors = [...spanProcessors];
  if (otlp?.traces !== undefined) {
    processors.push(
      new BatchSpanProcessor({ exporter: traceExporter(otlp.traces, log), ...BATCH }),
    );
  }
  if (processors.length === 0) return undefined;
  return new TracerProvider({
    resource,
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
    spanProcessors: processors,
  });
}

function meterProvider(
  { otlp, metricReaders = [] }: TelemetryOptions,
  resource: Resource,
  log: Logger,
): MeterProvider | undefined {
  const readers = [...metricReaders];
  if (otlp?.metrics !== undefined) {
    const exportIntervalMillis = otlp.metricIntervalMs ?? METRIC_INTERVAL_MS;
    readers.push(
      new PeriodicExportingMetricReader({
        exporter: metricExporter(otlp.metrics, log),
        exportIntervalMillis,
        exportTimeoutMillis: Math.min(SHUTDOWN_MS, exportIntervalMillis),
      }),
    );
  }
  return readers.length === 0 ? undefined : new MeterProvider({ resource, readers });
}

function logProvider(
  resource: Resource,
  exporter: ReturnType<typeof logExporter>,
): LoggerProvider & Provider {
  return new LoggerProvider({
    resource,
    processors: [new BatchLogRecordProcessor({ exporter, ...BATCH })],
  });
}

/**
 * Returns the OpenTelemetry resource of a service. Replicas have distinct instance ids, so that their metrics do not
 * overwrite each other.
 */
function resourceOf({ service, version, resource }: TelemetryOptions): Resource {
  return resourceFromAttributes({
    'service.namespace': 'writ',
    'service.instance.id': `${hostname()}-${process.pid}`,
    ...(version === undefined ? {} : { 'service.version': version }),
    ...parseKeyPairsIntoRecord(resource),
    'service.name': service,
  });
}

/** Waits for all providers, at most five seconds. Their failures are logged, not thrown. */
async function within(
  providers: readonly Provider[],
  work: (provider: Provider) => Promise<void>,
): Promise<void> {
  await settlesWithin(Promise.allSettled(providers.map(work)), SHUTDOWN_MS);
}
