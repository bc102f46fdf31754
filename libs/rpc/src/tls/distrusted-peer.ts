import { UnavailableError } from '@writ/kernel';

/** How Node names what is wrong with a certificate that it was shown. */
const CERTIFICATE_FAULT =
  /^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA|INVALID_PURPOSE|ERR_TLS_CERT_ALTNAME)/;

/**
 * The error for a server whose certificate its caller does not accept (SYS-3); undefined when something
 * else went wrong.
 */
export function distrustedPeer(error: unknown): UnavailableError | undefined {
  const seen = new Set<unknown>();
  for (let cause = error; cause instanceof Error && !seen.has(cause); cause = cause.cause) {
    if ('code' in cause && CERTIFICATE_FAULT.test(String(cause.code)))
      return new UnavailableError(
        'CERTIFICATE_REJECTED',
        `The server's certificate was not accepted: ${cause.message} (${cause.code}).`,
        { code: String(cause.code) },
        { cause: error },
      );
    seen.add(cause);
  }
  return undefined;
}
