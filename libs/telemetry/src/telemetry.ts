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
import { BatchSpanProcessor, type SpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { type DestinationStream, destination, type Logger } from 'pino';
import { installContextManager } from './context.ts';
import { createLogger, type LogLevel } from './logger.ts';
import { observeEventLoop } from './metrics/event-loop.ts';
import { createMetrics, type Metrics, NO_METRICS } from './metrics/metrics.ts';
import { logExporter, metricExporter, traceExporter } from './otlp/exporters.ts';
import { recordLines } from './otlp/log-records.ts';
import type { OtlpTargets } from './otlp/targets.ts';
import { PassThroughTracer } from './pass-through-tracer.ts';
import { KeepingProcessor } from './sampling/keeping-processor.ts';
import { KeepingSampler } from './sampling/keeping-sampler.ts';
import { KeptTraces } from './sampling/kept-traces.ts';

/** What {@link createTelemetry} needs. */
export interface TelemetryOptions {
  /** The service's name in traces, metrics and logs, such as `execution-meter`. */
  readonly service: string;
  readonly version?: string;
  /** Further attributes of the resource, in the form of OTEL_RESOURCE_ATTRIBUTES. */
  readonly resource?: string;
  /** Default `info`; `silent` for tests. */
  readonly logLevel?: LogLevel;
  /** Where log lines go; default standard error. */
  readonly logStream?: DestinationStream;
  /** The collectors; without them nothing is exported. */
  readonly otlp?: OtlpTargets;
  /** Share of the traces beginning here that is sampled by chance, from 0 to 1; default 1. */
  readonly sampleRatio?: number;
  /** Further takers of spans, such as {@link InMemorySpans}. */
  readonly spanProcessors?: readonly SpanProcessor[];
  /** Further takers of metrics. */
  readonly metricReaders?: readonly IMetricReader[];
}

/** One service's logger, tracer and metrics. Five services in one process have five of these (SYS-1). */
export interface Telemetry {
  readonly log: Logger;
  readonly tracer: Tracer;
  /** Whether anybody takes spans; where false, nothing need be said of them. */
  readonly traces: boolean;
  readonly metrics: Metrics;
  /** Sends what is buffered. Never rejects: a collector that is down is a warning in the log. */
  flush(): Promise<void>;
  /**
   * Sends what is buffered, for five seconds at most, and stops exporting; calling it again
   * changes nothing. Never rejects.
   */
  shutdown(): Promise<void>;
}

/** Milliseconds that a collector may hold up a shutdown. */
const SHUTDOWN_MS = 5_000;
/** What a collector that is away costs: so many spans, and so many log records. */
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
 * Builds the logger, the tracer and the metrics of one service (SYS-1). Nothing global is set but the
 * context manager, so every service of a shared process keeps its own `service.name`. A signal that
 * nobody takes costs nothing; trace ids still go into logs and `traceparent`.
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
  // What exporters say of themselves is not exported, so that an outage is not told to whoever is out.
  const ownLog = createLogger({ ...naming, stream });
  const resource = resourceOf(options);
  const logs = otlp.logs && logProvider(resource, logExporter(otlp.logs, ownLog));
  const log =
    logs === undefined ? ownLog : createLogger({ ...naming, stream: recordLines(stream, logs) });
  const traces = traceProvider(options, resource, ownLog);
  const metering = meterProvider(options, resource, ownLog);
  const metrics =
    metering === undefined ? NO_METRICS : createMetrics(metering.getMeter('writ', version));
  const stopObserving = observeEventLoop(metrics);
  const providers = [traces, metering, logs].filter((given) => given !== undefined);
  let stopping: Promise<void> | undefined;
  return {
    log,
    tracer: traces?.getTracer('writ', version) ?? new PassThroughTracer(),
    traces: traces !== undefined,
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
  const kept = new KeptTraces();
  return new TracerProvider({
    resource,
    sampler: new KeepingSampler(sampleRatio, kept),
    spanProcessors: [new KeepingProcessor(processors, kept)],
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

/** Replicas are told apart, since one's figures must not overwrite another's. */
function resourceOf({ service, version, resource }: TelemetryOptions): Resource {
  return resourceFromAttributes({
    'service.namespace': 'writ',
    'service.instance.id': `${hostname()}-${process.pid}`,
    ...(version === undefined ? {} : { 'service.version': version }),
    ...parseKeyPairsIntoRecord(resource),
    'service.name': service,
  });
}

/** Whoever fails has logged why; what is lost must not fail the caller. */
async function within(
  providers: readonly Provider[],
  work: (provider: Provider) => Promise<void>,
): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, SHUTDOWN_MS);
  await Promise.race([over.promise, Promise.allSettled(providers.map(work))]);
  clearTimeout(timer);
}
