import { APIConnectionError, APIError } from 'openai';
import { type AttemptFailure, isRecoverableStatus } from '../../domain/chat/failure.ts';

/** Connection errors before anything was sent, so that nothing can cost. */
const NOT_SENT: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** What an error of the SDK means (EM-8). Nothing of its text is kept, since it may quote content. */
export function attemptFailure(error: unknown): AttemptFailure {
  if (error instanceof APIConnectionError) return connectionFailure(error);
  if (error instanceof APIError) {
    const status = typeof error.status === 'number' ? error.status : statusInStream(error);
    if (status !== undefined) {
      return {
        what: status,
        recoverable: isRecoverableStatus(status),
        // An error in the midst of a stream comes after work that is paid.
        mayCost: typeof error.status !== 'number',
        retryAfterMs: retryAfterMs(error.headers),
      };
    }
    return { ...FAILED, what: 'stream_error', recoverable: isPassing(error) };
  }
  if (error instanceof SyntaxError) return { ...FAILED, what: 'bad_response' };
  // fetch reports a body that broke off as a TypeError.
  if (error instanceof TypeError && error.cause !== undefined) return connectionFailure(error);
  return { ...FAILED, what: 'bad_response' };
}

/** An attempt that took longer than it may. */
export const TIMED_OUT: AttemptFailure = {
  what: 'timeout',
  recoverable: true,
  mayCost: true,
  retryAfterMs: undefined,
};

/** The body of an answer broke off. */
export const BROKEN_OFF: AttemptFailure = { ...TIMED_OUT, what: 'connection' };

/** Something came that is no chat completion. */
export const BAD_RESPONSE: AttemptFailure = {
  what: 'bad_response',
  recoverable: false,
  mayCost: true,
  retryAfterMs: undefined,
};

const FAILED = BAD_RESPONSE;

function connectionFailure(error: Error): AttemptFailure {
  return { ...BROKEN_OFF, mayCost: !codesOf(error).some((code) => NOT_SENT.has(code)) };
}

/** The codes of an error and of what caused it; several when several addresses were tried. */
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

/** Gateways report what went wrong behind them as a status in the stream. */
function statusInStream({ code, error }: APIError): number | undefined {
  const inner = (error as { code?: unknown } | undefined)?.code;
  const status = Number(code ?? inner);
  return Number.isInteger(status) && status >= 400 && status < 600 ? status : undefined;
}

function isPassing({ code, type }: APIError): boolean {
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
