import {
  DeadlineError,
  type ErrorMetadata,
  PreconditionError,
  type Reason,
  type WritError,
} from '@writ/kernel';

/** Why a model call has no answer, in the words that a repeat gets, too. */
export interface CallFailure {
  /** `llm_timeout`, `llm_empty` or `provider_error:<what>`. */
  readonly stopReason: string;
  /** Stable reason of the error that ends the call. */
  readonly reason: Reason;
  /** One sentence, without content. */
  readonly message: string;
}

/**
 * The error that a failed call ends with: DEADLINE_EXCEEDED for a model that was too slow, else
 * FAILED_PRECONDITION. Neither asks for a repeat: the failure is on record, and a repeat gets it again.
 */
export function failureError({ stopReason, reason, message }: CallFailure): WritError {
  const metadata: ErrorMetadata = { stop_reason: stopReason };
  return reason === LLM_TIMEOUT
    ? new DeadlineError(reason, message, metadata)
    : new PreconditionError(reason as 'LLM_EMPTY' | 'PROVIDER_ERROR', message, metadata);
}

/** Reason of a call whose model did not answer in time, or could not be reached. */
const LLM_TIMEOUT = 'LLM_TIMEOUT';

/** What went wrong with one attempt. */
export interface AttemptFailure {
  /** `timeout`, `connection`, an HTTP status, or what was wrong with the answer. */
  readonly what: 'timeout' | 'connection' | 'bad_response' | 'stream_error' | 'empty' | number;
  /** Worth another attempt (EM-8). */
  readonly recoverable: boolean;
  /** Whether a model may have worked for it, so that it has to be paid. */
  readonly mayCost: boolean;
  /** Milliseconds that the provider asked to wait. */
  readonly retryAfterMs: number | undefined;
}

/** The failure of a call whose last attempt failed with this. */
export function callFailure(
  alias: string,
  { what }: AttemptFailure,
  attempts: number,
): CallFailure {
  const after = attempts === 1 ? '' : ` (${attempts} attempts)`;
  const unavailable = (stopReason: string, sentence: string): CallFailure => ({
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
            : `The provider of model ${alias} could not be reached${after}.`,
      };
    case 'empty':
      return {
        stopReason: 'llm_empty',
        reason: 'LLM_EMPTY',
        message: `Model ${alias} answered nothing.`,
      };
    case 'bad_response':
    case 'stream_error':
      return unavailable(
        `provider_error:${what}`,
        what === 'bad_response'
          ? `The provider of model ${alias} answered something that is no chat completion`
          : `The provider of model ${alias} broke off its answer with an error`,
      );
    default:
      return unavailable(
        `provider_error:${what}`,
        `The provider of model ${alias} answered with HTTP status ${what}`,
      );
  }
}

/** An answer that says nothing, where one was required. */
export const EMPTY_ANSWER: AttemptFailure = Object.freeze({
  what: 'empty',
  recoverable: false,
  mayCost: true,
  retryAfterMs: undefined,
});

/** HTTP statuses after which the same request may well succeed (EM-8). */
export function isRecoverableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}
