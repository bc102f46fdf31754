import { isStopReason, type WritError } from '@writ/kernel';

/** How a worker reacts to a peer's error. */
export type Reaction =
  /**
   * Retry the same call later, with new tokens or a new writ if the clock of their issuer was wrong (BD-3) or
   * the peer does not know their key yet.
   */
  | { readonly kind: 'retry'; readonly renews?: 'tokens' | 'writ' }
  /** Refresh the agent tokens, then retry. */
  | { readonly kind: 'refresh_tokens' }
  /** Get a new writ, then retry. */
  | { readonly kind: 'renew_writ' }
  /** Renew the slot grant, then retry. */
  | { readonly kind: 'renew_slot' }
  /** The agent may not act now: park it and retry later. */
  | { readonly kind: 'park' }
  /** The call_id has the record of another request: it was made by different code (RT-1). */
  | { readonly kind: 'diverged' }
  /** Another worker has claimed the agent: write nothing more. */
  | { readonly kind: 'abandon' }
  /** The agent has already ended, with this stop reason if the peer named it. */
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
 * Checks of a token that pass later: those of its times, once a clock is corrected (BD-3), and that of its
 * key, once every replica of its issuer has read a rotated key (SV-6).
 */
const TRANSIENT_CHECKS: readonly (string | undefined)[] = ['iat', 'nbf', 'kid'];

/**
 * Returns the reaction to a peer's error. Permanent errors stop the agent; all other calls are
 * retried under the same call_id, which is safe because they are idempotent (RT-1).
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
    // The tenant got workers of its own while the agent ran: the configuration may change back.
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
    // Every call has the token that it needs, so it was lost in transit.
    case 'TOKEN_MISSING':
      // A service token is renewed by itself.
      if (metadata.token === 'service') return { kind: 'retry' };
      if (!TRANSIENT_CHECKS.includes(metadata.check)) return { kind: 'refresh_tokens' };
      return metadata.token === 'agent' ? { kind: 'retry', renews: 'tokens' } : { kind: 'retry' };
    case 'WRIT_INVALID':
      if (TRANSIENT_CHECKS.includes(metadata.check)) return { kind: 'retry', renews: 'writ' };
      break;
    case 'WRIT_EXPIRED':
      return { kind: 'renew_writ' };
    case 'BUDGET_EXHAUSTED':
      return { kind: 'stop', stopReason: stopReason ?? budgetStop(metadata.dimension) };
  }
  // A call that was cancelled in transit has no outcome yet.
  if (stopReason !== undefined && stopReason !== 'cancelled') return { kind: 'stop', stopReason };
  if (RETRIED_KINDS.includes(error.kind)) return { kind: 'retry' };
  return { kind: 'stop', stopReason: `error:${reason.toLowerCase()}` };
}

function budgetStop(dimension: string | undefined): string {
  const stopReason = `budget_exhausted:${dimension ?? ''}`;
  return isStopReason(stopReason) ? stopReason : 'error:budget_exhausted';
}
