import { context, isSpanContextValid, trace } from '@opentelemetry/api';
import { type DestinationStream, destination, type Logger, pino, stdTimeFunctions } from 'pino';
import { limitOutageLines } from './outage-lines.ts';

/** Log level; `silent` disables logging. */
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

/** The log levels, from the most to the least verbose. */
export const LOG_LEVELS = [
  'trace',
  'debug',
  'info',
  'warn',
  'error',
  'fatal',
  'silent',
] as const satisfies readonly LogLevel[];

/** Options of {@link createLogger}. */
export interface LoggerOptions {
  readonly service: string;
  readonly version?: string;
  /** Default `info`. */
  readonly level?: LogLevel;
  /** Destination of the JSON lines; default standard error. */
  readonly stream?: DestinationStream;
  /** Returns the time of a monotonic clock in ms, for the interval between lines about an outage. */
  readonly now?: () => number;
}

const SECRET_FIELDS = [
  'authorization',
  'Authorization',
  'token',
  'access_token',
  'refresh_token',
  'slot_grant',
  'key',
  'apiKey',
  'api_key',
  'private_key',
  'x-api-key',
  'writ',
  'password',
  'secret',
  'cookie',
] as const;

/** Maximum depth of redacted fields below the root of a log line. */
const REDACTED_DEPTH = 3;

/**
 * Creates the JSON logger of a service. Every line has the service name and the ids of the active span
 * (SYS-1). Fields with secret names are redacted, down to three levels below the root. An unavailable dependency
 * is logged at most once in ten seconds, without a stack ({@link limitOutageLines}).
 */
export function createLogger(options: LoggerOptions): Logger {
  return pino(
    {
      level: options.level ?? 'info',
      base: {
        service: options.service,
        ...(options.version === undefined ? {} : { version: options.version }),
      },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      mixin: activeSpanIds,
      hooks: { logMethod: limitOutageLines(options.now) },
      redact: { paths: secretPaths(), censor: '[redacted]' },
    },
    options.stream ?? destination(2),
  );
}

function activeSpanIds(): Record<string, string> {
  const span = trace.getSpanContext(context.active());
  return span !== undefined && isSpanContextValid(span)
    ? { trace_id: span.traceId, span_id: span.spanId }
    : {};
}

function secretPaths(): string[] {
  const paths: string[] = [];
  for (let depth = 0; depth <= REDACTED_DEPTH; depth += 1) {
    for (const field of SECRET_FIELDS) {
      const last = /^\w+$/.test(field) ? `.${field}` : `["${field}"]`;
      paths.push(depth === 0 ? last.replace(/^\./, '') : Array(depth).fill('*').join('.') + last);
    }
  }
  return paths;
}
