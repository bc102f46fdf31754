import { Code, ConnectError } from '@connectrpc/connect';

/** The sentence of an error: the server's own, or what a person can do when it cannot be reached. */
export function sentenceOf(error: unknown): string {
  const { code, rawMessage } = ConnectError.from(error);
  if (code === Code.Unavailable || (code === Code.Unknown && /fetch/i.test(rawMessage))) {
    return rawMessage === '' || /fetch/i.test(rawMessage)
      ? 'Writ cannot be reached. Is it running? The page retries by itself.'
      : rawMessage;
  }
  return rawMessage === '' ? `The call failed: ${Code[code]}.` : rawMessage;
}

/** Whether the credential is not accepted, so that the person has to sign in. */
export function isUnauthenticated(error: unknown): boolean {
  return ConnectError.from(error).code === Code.Unauthenticated;
}

/** Whether another attempt may succeed. */
export function isTransient(error: unknown): boolean {
  const { code, rawMessage } = ConnectError.from(error);
  return (
    code === Code.Unavailable ||
    code === Code.ResourceExhausted ||
    code === Code.DeadlineExceeded ||
    code === Code.Aborted ||
    (code === Code.Unknown && /fetch|network/i.test(rawMessage))
  );
}
