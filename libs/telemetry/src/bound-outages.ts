import { isWritError, type WritError } from '@writ/kernel';
import type { LoggerOptions } from 'pino';

/** Least interval of two lines about the same outage, ms: loops retry several times a second. */
const EVERY_MS = 10_000;

/** Reasons of a peer that does not answer; others of the same status are about a run or a call. */
const PEER_REASONS: ReadonlySet<string> = new Set([
  'UNAVAILABLE',
  'NOT_SERVING',
  'NOT_STARTED',
  'DRAINING',
  'KEYS_UNAVAILABLE',
  'TRUST_FILE_MISSING',
]);

type LogMethod = NonNullable<NonNullable<LoggerOptions['hooks']>['logMethod']>;

/** What a line says of an unavailable dependency: no stack, which is the same each time. */
export function outageFields({ reason, message, cause }: WritError): object {
  return { reason, problem: message, ...(cause instanceof Error && { cause: cause.message }) };
}

/**
 * Returns how lines are written whose field `err` says that a database, a NATS server or a peer does not answer.
 * Such a line has reason, problem and cause in place of the stack, and appears every ten seconds at most, for a database
 * once for all that fails without it. `suppressed` counts the lines between.
 */
export function boundOutages(now: () => number = () => performance.now()): LogMethod {
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
