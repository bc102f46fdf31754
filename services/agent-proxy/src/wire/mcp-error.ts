import { isWritError, type WritError, wrapUnknown } from '@writ/kernel';

/** The HTTP error for a request that fails before the MCP server has handled it. */
export interface McpHttpError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

const STATUS: Readonly<Partial<Record<WritError['kind'], number>>> = {
  invalid_argument: 400,
  unauthenticated: 401,
  permission_denied: 403,
  not_found: 404,
  resource_exhausted: 429,
  unavailable: 503,
};
/** Reason codes of runs that have ended or are halted; they are not server errors. */
const REFUSED = ['RUN_ENDED', 'HALTED', 'FROZEN'];
/** Reason codes of temporary conditions that end without an action of the client. */
const TEMPORARY = ['AGENT_PAUSED'];
const INVALID_REQUEST = -32_600;
const SERVER_ERROR = -32_000;

/**
 * Returns the answer for an error: a JSON-RPC error with an HTTP status.
 * @param metadataUrl URL of the protected resource metadata, which a client reads to learn how to get a token (RFC
 *   9728)
 */
export function mcpErrorOf(thrown: unknown, metadataUrl: string): McpHttpError {
  const error = isWritError(thrown) ? thrown : wrapUnknown(thrown);
  const isTooLarge = error.reason === 'BODY_TOO_LARGE' || error.reason === 'JSON_TOO_LARGE';
  let status = STATUS[error.kind] ?? 500;
  if (REFUSED.includes(error.reason)) status = 403;
  if (TEMPORARY.includes(error.reason)) status = 503;
  if (isTooLarge) status = 413;
  const isLater = [429, 503].includes(status);
  const retryAfterMs = Number(error.metadata.retry_after_ms ?? (isLater ? 1_000 : 0));
  return {
    status,
    headers: {
      ...(status === 401 && { 'www-authenticate': `Bearer resource_metadata="${metadataUrl}"` }),
      ...(retryAfterMs > 0 && { 'retry-after': String(Math.ceil(retryAfterMs / 1_000)) }),
    },
    body: {
      jsonrpc: '2.0',
      id: null,
      error: {
        code: error.kind === 'invalid_argument' ? INVALID_REQUEST : SERVER_ERROR,
        message: error.message,
        data: { reason: error.reason.toLowerCase() },
      },
    },
  };
}
