import { UnavailableError } from '@writ/kernel';

/** Node error codes of a lost or failed connection. */
const LOST_CONNECTION =
  /^(EPIPE|ECONNRESET|ECONNREFUSED|ECONNABORTED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)$/;
/** Node error codes of an invalid peer certificate. */
const CERTIFICATE_ERROR =
  /^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA|INVALID_PURPOSE|ERR_TLS_CERT_ALTNAME)/;

/** Whether `error` or one of its causes is a lost connection; Connect reports some of them as INTERNAL. */
export function isLostConnection(error: unknown): boolean {
  return causeWithCode(error, LOST_CONNECTION) !== undefined;
}

/**
 * Returns the error for a server certificate that the client rejected (SYS-3); undefined for any other
 * error.
 */
export function rejectedCertificate(error: unknown): UnavailableError | undefined {
  const found = causeWithCode(error, CERTIFICATE_ERROR);
  if (found === undefined) return undefined;
  const { code, message } = found;
  return new UnavailableError(
    'CERTIFICATE_REJECTED',
    `The server's certificate is invalid: ${message} (${code}).`,
    { code },
    { cause: error },
  );
}

function causeWithCode(error: unknown, pattern: RegExp) {
  const seen = new Set<unknown>();
  for (let cause = error; cause instanceof Error && !seen.has(cause); cause = cause.cause) {
    if ('code' in cause && pattern.test(String(cause.code)))
      return { code: String(cause.code), message: cause.message };
    seen.add(cause);
  }
  return undefined;
}
