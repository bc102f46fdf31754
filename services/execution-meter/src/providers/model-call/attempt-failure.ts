import { APIConnectionError, APIError } from 'openai';
import { type AttemptFailure, isRecoverableStatus } from '../../domain/chat/failure.ts';

/** Error codes of attempts that never established a connection, so that the provider cannot charge for them. */
const NOT_SENT: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Error for an answer that the provider ended with an error, in an event of the stream or in the response body. */
export class AnswerFailedError extends Error {
  override readonly name = 'AnswerFailedError';
}

/**
 * Returns the failure of an attempt that threw `error` (EM-8). The message of the error is discarded, because it can
 * quote content.
 */
export function attemptFailure(error: unknown): AttemptFailure {
  if (error instanceof APIConnectionError) return connectionFailure(error);
  if (error instanceof APIError) {
    const status = typeof error.status === 'number' ? error.status : statusInStream(error);
    if (status !== undefined) {
      return {
        what: status,
        recoverable: isRecoverableStatus(status),
        // The provider may charge for a stream that ends with an error.
        mayCost: typeof error.status !== 'number',
        retryAfterMs: retryAfterMs(error.headers),
      };
    }
    return { ...BAD_RESPONSE, what: 'stream_error', recoverable: isTransient(error) };
  }
  if (error instanceof AnswerFailedError) return { ...BAD_RESPONSE, what: 'stream_error' };
  if (error instanceof SyntaxError) return BAD_RESPONSE;
  // fetch reports an interrupted body as a TypeError.
  if (error instanceof TypeError && error.cause !== undefined) return connectionFailure(error);
  return BAD_RESPONSE;
}

/** An attempt that exceeded its time limit. */
export const TIMED_OUT: AttemptFailure = {
  what: 'timeout',
  recoverable: true,
  mayCost: true,
  retryAfterMs: undefined,
};

/** A connection that closed before the end of the answer. */
export const CONNECTION_LOST: AttemptFailure = { ...TIMED_OUT, what: 'connection' };

/** A response that is too large, or is not a valid answer in the dialect of the request. */
export const BAD_RESPONSE: AttemptFailure = {
  what: 'bad_response',
  recoverable: false,
  mayCost: true,
  retryAfterMs: undefined,
};

function connectionFailure(error: Error): AttemptFailure {
  const wasNotSent = codesOf(error).some((code) => NOT_SENT.has(code)) || isBlockedPort(error);
  return { ...CONNECTION_LOST, mayCost: !wasNotSent };
}

/** Whether fetch blocked the port, such as 1 or 25: it then makes no connection, and the error has no code. */
function isBlockedPort(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > 4) return false;
  return error.message === 'bad port' || isBlockedPort(error.cause, depth + 1);
}

/** Returns the codes of an error, of its causes, and of the errors of each address that was tried. */
function codesOf(error: unknown, depth = 0): unknown[] {
  if (typeof error !== 'object' || error === null || depth > 4) return [];
  const { code, cause, errors } = error as {
    code?: unknown;
    cause?: unknown;
    errors?: unknown;
  };
  const nested = Array.isArray(errors) ? errors : [];
  return [code, ...[cause, ...nested].flatMap((inner) => codesOf(inner, depth + 1))];
}

/** Returns the HTTP status that a provider reports inside a stream. */
function statusInStream({ code, error }: APIError): number | undefined {
  const inner = (error as { code?: unknown } | undefined)?.code;
  const status = Number(code ?? inner);
  return Number.isInteger(status) && status >= 400 && status < 600 ? status : undefined;
}

function isTransient({ code, type }: APIError): boolean {
  return [code, type].some(
    (word) => typeof word === 'string' && /server_error|overloaded|rate_limit|timeout/.test(word),
  );
}

function retryAfterMs(headers: Headers | undefined): number | undefined {
  const text = headers?.get('retry-after-ms') ?? undefined;
  if (text !== undefined && /^\d{1,9}$/.test(text)) return Number(text);
  const after = headers?.get('retry-after') ?? '';
  if (/^\d{1,6}(\.\d+)?$/.test(after)) return Math.ceil(Number(after) * 1000);
  const at = Date.parse(after);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}
