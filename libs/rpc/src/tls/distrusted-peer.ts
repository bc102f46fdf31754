import { UnavailableError } from '@writ/kernel';

/** Node error codes of an invalid peer certificate. */
const CERTIFICATE_ERROR =
  /^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA|INVALID_PURPOSE|ERR_TLS_CERT_ALTNAME)/;

/**
 * Returns the error for a server certificate that the client rejected (SYS-3); undefined for any other
 * error.
 */
export function distrustedPeer(error: unknown): UnavailableError | undefined {
  const seen = new Set<unknown>();
  for (let cause = error; cause instanceof Error && !seen.has(cause); cause = cause.cause) {
    if ('code' in cause && CERTIFICATE_ERROR.test(String(cause.code)))
      return new UnavailableError(
        'CERTIFICATE_REJECTED',
        `The server's certificate is invalid: ${cause.message} (${cause.code}).`,
        { code: String(cause.code) },
        { cause: error },
      );
    seen.add(cause);
  }
  return undefined;
}
