import { isWritError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';

/** Minimum interval between two log lines about the same outage, ms; connections are retried several times a second. */
const EVERY_MS = 10_000;

/**
 * Returns a function that logs failures of the bus. An outage, such as a server that is down or streams that do not
 * exist yet, is logged at most once every ten seconds for each reason code, with the servers if they are given and
 * without a stack. Every other failure is logged each time.
 * @param servers URLs of the NATS servers; an outage is logged with their hosts, without credentials. If empty, an
 *   outage is logged without hosts
 * @param message the log message of every other failure and, if `servers` is empty, of an outage
 * @param now milliseconds of a monotonic clock
 */
export function busFailures(
  log: Pick<Logger, 'warn'>,
  servers: readonly string[],
  message: string,
  now: () => number = () => performance.now(),
): (error: unknown, failure: object) => void {
  const loggedAt = new Map<string, number>();
  const hosts = servers.map(hostOf).join(', ');
  return (error, failure) => {
    // An event handler also fails if its database is unreachable, which is not an outage of NATS.
    const isOutage =
      isWritError(error) && error.kind === 'unavailable' && error.reason.startsWith('BUS_');
    if (!isOutage) {
      log.warn({ err: error, ...failure }, message);
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
