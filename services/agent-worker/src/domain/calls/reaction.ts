import { isStopReason, type WritError } from '@writ/kernel';

/** How a worker reacts to a peer's error. */
export type Reaction =
  /**
   * Retry the same call later. If `renews` is set, first renew the tokens or the writ: the peer rejected them because a
   * clock is wrong (BD-3) or because the peer does not have the signing key yet.
   */
  | { readonly kind: 'retry'; readonly renews?: 'tokens' | 'writ' }
  /** Refresh the agent tokens, then retry. */
  | { readonly kind: 'refresh_tokens' }
  /** Get a new writ, then retry. */
  | { readonly kind: 'renew_writ' }
  /** The peer does not have the key of a receipt yet: retry the same call later, a limited number of times. */
  | { readonly kind: 'await_receipt_key' }
  /** Renew the slot grant, then retry. */
  | { readonly kind: 'renew_slot' }
  /** The agent may not act now: park it and retry later. */
  | { readonly kind: 'park' }
  /** The peer recorded a different request under this call_id, because different agent code made the call (RT-1). */
  | { readonly kind: 'diverged' }
  /** Another worker has claimed the agent: write nothing more. */
  | { readonly kind: 'abandon' }
  /** The agent has already ended; `stopReason` is undefined if the response of the peer does not contain it. */
  | { readonly kind: 'ended'; readonly stopReason: string | undefined }
  /** No retry can succeed: the agent stops. */
  | { readonly kind: 'stop'; readonly stopReason: string };

const RETRIED_KINDS: readonly WritError['kind'][] = [
  'unavailable',
  'aborted',
  'cancelled',
  'deadline_exceeded',
  'resource_exhausted',
];

/**
 * Token checks that can succeed on a later retry: `iat` and `nbf` after a clock is corrected (BD-3), and `kid` after
 * every replica of the issuer has read a rotated key (SV-6).
 */
const TRANSIENT_CHECKS: readonly (string | undefined)[] = ['iat', 'nbf', 'kid'];

/**
 * Returns the reaction to a peer's error. A permanent error stops the agent. After a transient error, the call is
 * retried under the same call_id, which is safe because calls are idempotent (RT-1).
 */
export function reactTo(error: WritError): Reaction {
  const { reason, metadata } = error;
  const named = metadata.stop_reason;
  const stopReason = named !== undefined && isStopReason(named) ? named : undefined;
  switch (reason) {
    case 'STALE_EPOCH':
      return { kind: 'abandon' };
    case 'CALL_ID_REUSED':
      return { kind: 'diverged' };
    case 'HALTED':
    case 'FROZEN':
    // Since the agent started, the tenant was assigned to other workers; the configuration may be reverted.
    case 'TENANT_NOT_SERVED':
      return { kind: 'park' };
    case 'SLOT_GRANT_REQUIRED':
    case 'SLOT_GRANT_EXPIRED':
    case 'AGENT_PAUSED':
      return { kind: 'renew_slot' };
    case 'RUN_ENDED':
      return { kind: 'ended', stopReason };
    case 'TOKEN_EXPIRED':
    case 'TOKEN_INVALID':
    // The worker sends the required token with every call, so the token was lost in transit.
    case 'TOKEN_MISSING':
      // Service tokens are renewed automatically.
      if (metadata.token === 'service') return { kind: 'retry' };
      if (!TRANSIENT_CHECKS.includes(metadata.check)) return { kind: 'refresh_tokens' };
      return metadata.token === 'agent' ? { kind: 'retry', renews: 'tokens' } : { kind: 'retry' };
    case 'WRIT_INVALID':
      if (TRANSIENT_CHECKS.includes(metadata.check)) return { kind: 'retry', renews: 'writ' };
      break;
    case 'RECEIPT_INVALID':
      if (metadata.check === 'kid') return { kind: 'await_receipt_key' };
      break;
    case 'WRIT_EXPIRED':
      return { kind: 'renew_writ' };
    // A repetition of the call would have the same size.
    case 'MESSAGE_TOO_LARGE':
      return { kind: 'stop', stopReason: 'error:message_too_large' };
    case 'BUDGET_EXHAUSTED':
      return { kind: 'stop', stopReason: stopReason ?? budgetStop(metadata.dimension) };
  }
  // `cancelled` does not stop the agent: the call was cancelled before it had an outcome and is retried.
  if (stopReason !== undefined && stopReason !== 'cancelled') return { kind: 'stop', stopReason };
  if (RETRIED_KINDS.includes(error.kind)) return { kind: 'retry' };
  return { kind: 'stop', stopReason: `error:${reason.toLowerCase()}` };
}

function budgetStop(dimension: string | undefined): string {
  const stopReason = `budget_exhausted:${dimension ?? ''}`;
  return isStopReason(stopReason) ? stopReason : 'error:budget_exhausted';
}
