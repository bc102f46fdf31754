import type { ServerResponse } from 'node:http';

/** An error as OpenAI-compatible servers send it. */
export interface OpenAiError {
  readonly status: number;
  readonly message: string;
  readonly code?: string;
  readonly param?: string;
  /** Seconds, for the Retry-After header. */
  readonly retryAfter?: number;
}

/** Sends `error` with its status and the body that the OpenAI SDK reads. */
export function writeError(response: ServerResponse, error: OpenAiError): void {
  const { status, message, code = null, param = null } = error;
  const body = JSON.stringify({ error: { message, type: typeOf(status), param, code } });
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(error.retryAfter === undefined ? {} : { 'retry-after': String(error.retryAfter) }),
  });
  response.end(body);
}

function typeOf(status: number): string {
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}
