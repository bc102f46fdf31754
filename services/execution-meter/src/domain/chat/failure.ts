import {
  DeadlineError,
  type ErrorMetadata,
  PreconditionError,
  type Reason,
  type WritError,
} from '@writ/kernel';

/** Reason why a model call has no answer. If it is recorded, a repeat of the call returns it. */
export interface CallFailure {
  /** `llm_timeout`, `llm_empty`, `provider_error:<what>`; not recorded: `budget_exhausted:<dimension>`, `cancelled`. */
  readonly stopReason: string;
  /** Reason code of the error that ends the call. */
  readonly reason: Reason;
  /** One sentence, without content. */
  readonly message: string;
}

/**
 * Returns the error of a failed call: DEADLINE_EXCEEDED for LLM_TIMEOUT, otherwise FAILED_PRECONDITION. Neither is
 * retryable, because a repeat of a Generate call returns the recorded failure. CountTokens and AccessResponse record
 * nothing: a repeat sends a new request to the provider.
 */
export function failureError({ stopReason, reason, message }: CallFailure): WritError {
  const metadata: ErrorMetadata = { stop_reason: stopReason };
  return reason === LLM_TIMEOUT
    ? new DeadlineError(reason, message, metadata)
    : new PreconditionError(reason as 'LLM_EMPTY' | 'PROVIDER_ERROR', message, metadata);
}

/** Reason code of a call whose model timed out or was unreachable, or whose connection was lost. */
const LLM_TIMEOUT = 'LLM_TIMEOUT';

/** Failure of one attempt. */
export interface AttemptFailure {
  /** `timeout`, `connection`, an HTTP status, or the problem with the response. */
  readonly what: 'timeout' | 'connection' | 'bad_response' | 'stream_error' | 'empty' | number;
  /** Whether the attempt may be retried (EM-8). */
  readonly recoverable: boolean;
  /** Whether the provider may charge for the attempt. */
  readonly mayCost: boolean;
  /** Retry-After of the provider, in milliseconds. */
  readonly retryAfterMs: number | undefined;
}

/** Returns the failure of a call of a model from the failure of its last attempt. */
export function callFailure(
  { alias, baseUrl }: { readonly alias: string; readonly baseUrl: string },
  { what }: AttemptFailure,
  attempts: number,
): CallFailure {
  const after = attempts === 1 ? '' : ` (${attempts} attempts)`;
  const providerError = (stopReason: string, sentence: string): CallFailure => ({
    stopReason,
    reason: 'PROVIDER_ERROR',
    message: `${sentence}${after}.`,
  });
  switch (what) {
    case 'timeout':
    case 'connection':
      return {
        stopReason: 'llm_timeout',
        reason: LLM_TIMEOUT,
        message:
          what === 'timeout'
            ? `Model ${alias} did not answer in time${after}.`
            : `Model ${alias} could not be reached at ${originOf(baseUrl)}, or the connection was lost${after}.`,
      };
    case 'empty':
      return {
        stopReason: 'llm_empty',
        reason: 'LLM_EMPTY',
        message: `Model ${alias} returned an empty answer.`,
      };
    case 'bad_response':
    case 'stream_error':
      return providerError(
        `provider_error:${what}`,
        what === 'bad_response'
          ? `The provider of model ${alias} returned a response that is invalid or too large`
          : `The provider of model ${alias} ended its answer with an error`,
      );
    default:
      return providerError(
        `provider_error:${what}`,
        `The provider of model ${alias} returned HTTP status ${what}`,
      );
  }
}

/** Returns the scheme, host and port of a base URL, without the credentials that it may contain. */
function originOf(baseUrl: string): string {
  return URL.parse(baseUrl)?.origin ?? 'its address';
}

/** An empty answer to a call that requires content. */
export const EMPTY_ANSWER: AttemptFailure = Object.freeze({
  what: 'empty',
  recoverable: false,
  mayCost: true,
  retryAfterMs: undefined,
});

/** Whether an HTTP status is retryable (EM-8). */
export function isRecoverableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}
