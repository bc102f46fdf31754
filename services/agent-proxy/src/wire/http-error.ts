import { isWritError, type WritError, wrapUnknown } from '@writ/kernel';

/**
 * An error as an HTTP response. Its status and its header x-should-retry make clients stop after one request when the
 * error is final (AP-2). Codex stops only after status 400, so all final errors have this status for Codex.
 */
export interface HttpError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly facts: ErrorFacts;
}

/** The fields of an error, independent of the dialect. */
export interface ErrorFacts {
  readonly status: number;
  readonly message: string;
  /** An error type of OpenAI. */
  readonly type: string;
  readonly code: string;
  readonly param: string | null;
}

/** An error body in the format of the OpenAI API. */
export function openAiError({ message, type, code, param }: ErrorFacts): object {
  return { error: { message, type, code, param } };
}

/** An error body in the format of the Anthropic API, with the code as an additional field. */
export function anthropicError({ status, message, code }: ErrorFacts): object {
  const type = ANTHROPIC_TYPES[status] ?? 'api_error';
  return { type: 'error', error: { type, message, code } };
}

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'invalid_request_error',
  429: 'rate_limit_error',
  503: 'overloaded_error',
};

interface Shape {
  readonly status: number;
  readonly type: string;
  /** Default: the reason code in lower case. */
  readonly code?: string;
  /** Whether clients should repeat the request; undefined leaves it to their own rules for the status. */
  readonly shouldRetry?: boolean;
}

const REFUSED = { status: 403, type: 'permission_denied', shouldRetry: false } as const;
const SHAPES: Readonly<Record<string, Shape>> = {
  BUDGET_EXHAUSTED: {
    status: 402,
    type: 'insufficient_quota',
    code: 'budget_exhausted',
    shouldRetry: false,
  },
  RUN_ENDED: REFUSED,
  TAB_CLOSED: { ...REFUSED, code: 'run_ended' },
  HALTED: { ...REFUSED, code: 'run_halted' },
  FROZEN: { ...REFUSED, code: 'run_halted' },
  DEADLINE_EXCEEDED: { ...REFUSED, code: 'deadline_exceeded' },
  AGENT_PAUSED: { status: 503, type: 'server_error', shouldRetry: true },
  UNKNOWN_MODEL: {
    status: 404,
    type: 'invalid_request_error',
    code: 'model_not_found',
    shouldRetry: false,
  },
  SUB_AGENT_LIMIT: { status: 402, type: 'insufficient_quota', shouldRetry: false },
  // Not retryable: a run lasts for minutes, which is longer than clients keep retrying.
  OPEN_RUNS_LIMIT: { status: 429, type: 'rate_limit_exceeded', shouldRetry: false },
  CALL_ID_REUSED: { status: 409, type: 'invalid_request_error', shouldRetry: false },
  LLM_TIMEOUT: { status: 504, type: 'server_error', shouldRetry: false },
  PROVIDER_ERROR: { status: 502, type: 'server_error', shouldRetry: false },
  UNREVIEWABLE_OUTPUT: REFUSED,
  HOST_NOT_ALLOWED: REFUSED,
};
const BY_KIND: Readonly<Partial<Record<WritError['kind'], Shape>>> = {
  invalid_argument: { status: 400, type: 'invalid_request_error' },
  // Clients decide themselves: some obtain a new token and repeat the request.
  unauthenticated: { status: 401, type: 'invalid_request_error', code: 'invalid_api_key' },
  permission_denied: REFUSED,
  not_found: { status: 404, type: 'invalid_request_error', shouldRetry: false },
  failed_precondition: { status: 400, type: 'invalid_request_error' },
  resource_exhausted: { status: 429, type: 'rate_limit_exceeded' },
  unavailable: { status: 503, type: 'server_error', shouldRetry: true },
};
const OTHER: Shape = { status: 500, type: 'server_error' };
/** Not retryable: a tenant cap resets at the end of its day or month, long after clients have stopped retrying. */
const OF_TENANT: Shape = {
  status: 429,
  type: 'insufficient_quota',
  code: 'tenant_budget_exhausted',
  shouldRetry: false,
};

/**
 * Returns the answer for an error.
 * @param userAgent User-Agent of the client. Codex retries every status except 400 up to five times, and prints the
 *   message
 */
export function httpErrorOf(thrown: unknown, userAgent = ''): HttpError {
  const error = isWritError(thrown) ? thrown : wrapUnknown(thrown);
  const { status, type, code, shouldRetry } = shapeOf(error);
  const isLater = shouldRetry !== false && [429, 503].includes(status);
  const retryAfterMs = Number(error.metadata.retry_after_ms ?? (isLater ? 1_000 : 0));
  return {
    status: shouldRetry === false && /^codex/i.test(userAgent) ? 400 : status,
    headers: {
      ...(shouldRetry !== undefined && { 'x-should-retry': String(shouldRetry) }),
      ...(retryAfterMs > 0 && { 'retry-after': String(Math.ceil(retryAfterMs / 1_000)) }),
    },
    facts: {
      status,
      message: error.message,
      type,
      code: code ?? error.reason.toLowerCase(),
      param: error.metadata.dimension ?? error.metadata.field ?? null,
    },
  };
}

function shapeOf(error: WritError): Shape {
  const ofTenant = error.metadata.level?.startsWith('tenant_') === true;
  if (error.reason === 'BUDGET_EXHAUSTED' && ofTenant) return OF_TENANT;
  return SHAPES[error.reason] ?? BY_KIND[error.kind] ?? OTHER;
}
