import { Code, ConnectError } from '@connectrpc/connect';

/**
 * Matches the errors of browsers when the server does not respond, or when the connection breaks while a stream is
 * read: "fetch", "network error" and "input stream" in Chromium and Firefox, "Load failed" and "network connection" in
 * WebKit.
 */
const NO_ANSWER = /fetch|network|load failed|input stream/i;

/** Returns the message of an error, or a fix if the server cannot be reached. */
export function sentenceOf(error: unknown): string {
  const { code, rawMessage } = ConnectError.from(error);
  const isUnanswered = code === Code.Unknown && NO_ANSWER.test(rawMessage);
  if (isUnanswered || (code === Code.Unavailable && rawMessage === ''))
    return 'Writ cannot be reached. Check that it is running, then retry.';
  return rawMessage === '' ? `The call failed: ${Code[code]}.` : rawMessage;
}

/** Returns whether the server rejected the credential, so that the user must sign in again. */
export function isUnauthenticated(error: unknown): boolean {
  return ConnectError.from(error).code === Code.Unauthenticated;
}

/**
 * Returns whether a lost connection may have caused an error. The platform sends a code with each of its errors; an
 * error without a code comes from a browser or proxy, and browsers report a lost connection with various messages. A
 * proxy can also end a response inside of a message.
 */
export function mayBeLostConnection(error: unknown): boolean {
  const { code, rawMessage } = ConnectError.from(error);
  return isTransient(error) || code === Code.Unknown || rawMessage.includes('incomplete envelope');
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
