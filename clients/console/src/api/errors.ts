import { Code, ConnectError } from '@connectrpc/connect';

/** What browsers say when no answer arrives: Chromium and Firefox "fetch", WebKit "Load failed". */
const NO_ANSWER = /fetch|network|load failed/i;

/** The sentence of an error: the server's own, or what a person can do when it cannot be reached. */
export function sentenceOf(error: unknown): string {
  const { code, rawMessage } = ConnectError.from(error);
  const isUnanswered = code === Code.Unknown && NO_ANSWER.test(rawMessage);
  if (isUnanswered || (code === Code.Unavailable && rawMessage === ''))
    return 'Writ cannot be reached. Check that it is running, then retry.';
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
    (code === Code.Unknown && NO_ANSWER.test(rawMessage))
  );
}
