import type { Tracer } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, type SpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { DestinationStream, Logger } from 'pino';
import { installContextManager } from './context.ts';
import { createLogger, type LogLevel } from './logger.ts';
import { OtlpExporter } from './otlp-exporter.ts';

/** What {@link createTelemetry} needs. */
export interface TelemetryOptions {
  /** The service's name in traces and logs, such as `execution-meter`. */
  readonly service: string;
  readonly version?: string;
  /** Default `info`; `silent` for tests. */
  readonly logLevel?: LogLevel;
  /** Where log lines go; default standard error. */
  readonly logStream?: DestinationStream;
  /** OTLP gRPC collector, such as `http://127.0.0.1:4317`; without it nothing is exported. */
  readonly otlpEndpoint?: string;
  /** Further takers of spans, such as {@link InMemorySpans}. */
  readonly spanProcessors?: readonly SpanProcessor[];
}

/** One service's logger and tracer. Five services in one process have five of these (SYS-1). */
export interface Telemetry {
  readonly log: Logger;
  readonly tracer: Tracer;
  readonly tracerProvider: TracerProvider;
  /** Sends what is buffered. Never rejects: a collector that is down is a warning in the log. */
  flush(): Promise<void>;
  /** Sends what is buffered and stops exporting; calling it again changes nothing. Never rejects. */
  shutdown(): Promise<void>;
}

/**
 * Builds the logger and the tracer of one service (SYS-1). Nothing global is set but the context
 * manager, so every service of a shared process keeps its own `service.name`. Without an endpoint
 * and processors, spans still carry ids into logs and `traceparent` but go nowhere.
 */
export function createTelemetry(options: TelemetryOptions): Telemetry {
  installContextManager();
  const { service, version } = options;
  const log = createLogger({
    service,
    ...(version === undefined ? {} : { version }),
    ...(options.logLevel === undefined ? {} : { level: options.logLevel }),
    ...(options.logStream === undefined ? {} : { stream: options.logStream }),
  });
  const spanProcessors = [...(options.spanProcessors ?? [])];
  if (options.otlpEndpoint !== undefined) {
    const exporter = new OtlpExporter(options.otlpEndpoint, log);
    spanProcessors.push(new BatchSpanProcessor({ exporter, scheduledDelayMillis: 1000 }));
  }
  const tracerProvider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': service,
      ...(version === undefined ? {} : { 'service.version': version }),
    }),
    spanProcessors,
  });
  const settle = async (work: Promise<void>, what: string): Promise<void> => {
    try {
      await work;
    } catch {
      // The exporter has logged why; the spans are lost, which must not fail the caller.
      log.debug(`Spans were dropped during ${what}.`);
    }
  };
  let stopping: Promise<void> | undefined;
  return {
    log,
    tracer: tracerProvider.getTracer('writ', version),
    tracerProvider,
    flush: () => settle(tracerProvider.forceFlush(), 'flush'),
    shutdown: () => {
      stopping ??= settle(tracerProvider.shutdown(), 'shutdown');
      return stopping;
    },
  };
}
