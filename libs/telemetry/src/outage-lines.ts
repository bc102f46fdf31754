import { isWritError, type WritError } from '@writ/kernel';
import type { LoggerOptions } from 'pino';

/** Minimum interval between two log lines about one outage, ms: loops retry several times a second. */
const EVERY_MS = 10_000;

/** Reason codes of an unreachable peer; other codes with the status UNAVAILABLE concern one run or call. */
const PEER_REASONS: ReadonlySet<string> = new Set([
  'UNAVAILABLE',
  'NOT_SERVING',
  'NOT_STARTED',
  'DRAINING',
  'KEYS_UNAVAILABLE',
  'TRUST_FILE_MISSING',
]);

type LogMethod = NonNullable<NonNullable<LoggerOptions['hooks']>['logMethod']>;

/**
 * Returns the log fields for the error of an unavailable dependency. The stack is omitted, because it is the same in
 * every line.
 */
export function outageFields({ reason, message, cause }: WritError): object {
  return { reason, problem: message, ...(cause instanceof Error && { cause: cause.message }) };
}

/**
 * Returns a log method that limits the log lines about outages. A line is about an outage if its field `err` is the
 * error of an unreachable database, NATS server or peer. The line has the fields reason, problem and cause instead of a
 * stack. It is written at most once in ten seconds per reason and log message; for a database, per reason. The field
 * `suppressed` is the number of lines that were omitted before it.
 */
export function limitOutageLines(now: () => number = () => performance.now()): LogMethod {
  const outages = new Map<string, { loggedAt: number; suppressed: number }>();
  return function log(args, method) {
    const [fields, text] = args as unknown as [unknown, unknown];
    const error = errorOf(fields);
    if (error === undefined) return method.apply(this, args);
    const key = error.reason.startsWith('STORE_') ? error.reason : `${error.reason} ${text}`;
    const outage = outages.get(key) ?? { loggedAt: Number.NEGATIVE_INFINITY, suppressed: 0 };
    outages.set(key, outage);
    if (now() - outage.loggedAt < EVERY_MS) {
      outage.suppressed += 1;
      return undefined;
    }
    const { err: _, ...others } = fields as { readonly err: unknown };
    const { suppressed } = outage;
    const line = {
      ...others,
      ...outageFields(error),
      ...(suppressed > 0 && { suppressed }),
    };
    outage.loggedAt = now();
    outage.suppressed = 0;
    return method.apply(this, [line, text] as unknown as Parameters<typeof method>);
  };
}

function errorOf(fields: unknown): WritError | undefined {
  if (typeof fields !== 'object' || fields === null || !('err' in fields)) return undefined;
  const { err } = fields;
  if (!isWritError(err) || err.kind !== 'unavailable') return undefined;
  return PEER_REASONS.has(err.reason) || /^(STORE|BUS)_/.test(err.reason) ? err : undefined;
}
