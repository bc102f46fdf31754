import {
  type AnyValue,
  type LoggerProvider,
  ROOT_CONTEXT,
  SeverityNumber,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import type { DestinationStream } from 'pino';

const SEVERITIES: Readonly<Record<string, SeverityNumber>> = {
  trace: SeverityNumber.TRACE,
  debug: SeverityNumber.DEBUG,
  info: SeverityNumber.INFO,
  warn: SeverityNumber.WARN,
  error: SeverityNumber.ERROR,
  fatal: SeverityNumber.FATAL,
};

interface Line {
  readonly level?: string;
  readonly time?: string;
  readonly msg?: string;
  readonly trace_id?: string;
  readonly span_id?: string;
  readonly service?: unknown;
  readonly version?: unknown;
  readonly [field: string]: unknown;
}

/**
 * Returns a stream that writes every line to `stream` and also exports it as a log record with the trace id and span id
 * of the line (SYS-1). Lines are exported as written, so that redacted fields stay redacted.
 */
export function recordLines(
  stream: DestinationStream,
  provider: LoggerProvider,
): DestinationStream {
  const logger = provider.getLogger('writ');
  return {
    write(line: string) {
      stream.write(line);
      const {
        level = 'info',
        time,
        msg,
        trace_id,
        span_id,
        service,
        version,
        ...fields
      } = parse(line);
      logger.emit({
        ...(time !== undefined && { timestamp: new Date(time) }),
        severityText: level.toUpperCase(),
        severityNumber: SEVERITIES[level] ?? SeverityNumber.UNSPECIFIED,
        body: msg ?? '',
        attributes: fields as Record<string, AnyValue>,
        context:
          trace_id === undefined || span_id === undefined
            ? ROOT_CONTEXT
            : trace.setSpanContext(ROOT_CONTEXT, {
                traceId: trace_id,
                spanId: span_id,
                traceFlags: TraceFlags.SAMPLED,
              }),
      });
    },
  };
}

function parse(line: string): Line {
  try {
    return JSON.parse(line) as Line;
  } catch {
    // A malformed line must not fail the code that logs it.
    return { msg: 'malformed log line' };
  }
}
