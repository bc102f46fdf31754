import { isWritError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';

/** Minimum interval between two log lines about the same outage, ms; connections are retried several times a second. */
const EVERY_MS = 10_000;

/**
 * Returns a function that logs failures of event handlers: an error if the event is dropped, because its handler
 * rejected it as invalid; otherwise a warning, because the event is delivered again.
 * @param message the log message of the warning
 */
export function handlerFailures(
  log: Pick<Logger, 'warn' | 'error'>,
  message: string,
): (error: unknown, failure: object) => void {
  return (error, failure) => {
    const fields = { err: error, ...failure };
    if ('dropped' in failure) log.error(fields, 'event rejected as invalid and dropped');
    else log.warn(fields, message);
  };
}

/**
 * Returns a function that logs failures of the bus. An outage, such as a server that is down or streams that do not
 * exist yet, is logged at most once every ten seconds for each reason code, with the servers if they are given and
 * without a stack. Every other failure is logged each time, as by {@link handlerFailures}.
 * @param servers URLs of the NATS servers; an outage is logged with their hosts, without credentials. If empty, an
 *   outage is logged without hosts
 * @param message the log message of every other failure and, if `servers` is empty, of an outage
 * @param now milliseconds of a monotonic clock
 */
export function busFailures(
  log: Pick<Logger, 'warn' | 'error'>,
  servers: readonly string[],
  message: string,
  now: () => number = () => performance.now(),
): (error: unknown, failure: object) => void {
  const loggedAt = new Map<string, number>();
  const others = handlerFailures(log, message);
  const hosts = servers.map(hostOf).join(', ');
  return (error, failure) => {
    // An event handler also fails if its database is unreachable, which is not an outage of NATS.
    const isOutage =
      isWritError(error) && error.kind === 'unavailable' && error.reason.startsWith('BUS_');
    if (!isOutage) {
      others(error, failure);
      return;
    }
    const { reason, message: problem } = error;
    const last = loggedAt.get(reason);
    if (last !== undefined && now() - last < EVERY_MS) return;
    loggedAt.set(reason, now());
    if (hosts === '') log.warn({ reason, problem }, message);
    else log.warn({ reason, problem, servers: hosts }, 'waiting for NATS');
  };
}

/** The host and port of a server, which may be given without a scheme. */
function hostOf(server: string): string {
  const url = server.includes('://') ? server : `nats://${server}`;
  return URL.parse(url)?.host ?? 'unknown';
}
