import { isStopReason, type WritError } from '@writ/kernel';

/** What a worker does about a peer's error. */
export type Reaction =
  /** Make the same call again, later. */
  | { readonly kind: 'retry' }
  /** Get fresh agent tokens, then make the same call again. */
  | { readonly kind: 'refresh_tokens' }
  /** Get a fresh writ, then make the same call again. */
  | { readonly kind: 'renew_writ' }
  /** Ask for a slot grant, then make the same call again. */
  | { readonly kind: 'renew_slot' }
  /** The agent may not act now: sleep and look again. */
  | { readonly kind: 'park' }
  /** Another worker has the agent: write nothing more. */
  | { readonly kind: 'abandon' }
  /** The agent has ended already; with this reason, if the peer told. */
  | { readonly kind: 'ended'; readonly stopReason: string | undefined }
  /** Nothing will change the answer: the agent ends. */
  | { readonly kind: 'stop'; readonly stopReason: string };

const RETRIED_KINDS: readonly WritError['kind'][] = [
  'unavailable',
  'aborted',
  'cancelled',
  'deadline_exceeded',
  'resource_exhausted',
];

/**
 * The one place that says what each error of a peer means for the agent. Errors that no repeat can
 * change end it; whatever a repeat may change is repeated under the same call_id, which is safe
 * (RT-1).
 */
export function reactTo(error: WritError): Reaction {
  const { reason, metadata } = error;
  const named = metadata.stop_reason;
  const stopReason = named !== undefined && isStopReason(named) ? named : undefined;
  switch (reason) {
    case 'STALE_EPOCH':
      return { kind: 'abandon' };
    case 'HALTED':
    case 'FROZEN':
      return { kind: 'park' };
    case 'SLOT_GRANT_REQUIRED':
    case 'SLOT_GRANT_EXPIRED':
    case 'AGENT_PAUSED':
      return { kind: 'renew_slot' };
    case 'RUN_ENDED':
      return { kind: 'ended', stopReason };
    case 'TOKEN_EXPIRED':
      return { kind: 'refresh_tokens' };
    case 'WRIT_EXPIRED':
      return { kind: 'renew_writ' };
    case 'BUDGET_EXHAUSTED':
      return { kind: 'stop', stopReason: stopReason ?? budgetStop(metadata.dimension) };
  }
  // A call that was cancelled somewhere on its way has no outcome yet.
  if (stopReason !== undefined && stopReason !== 'cancelled') return { kind: 'stop', stopReason };
  if (RETRIED_KINDS.includes(error.kind)) return { kind: 'retry' };
  return { kind: 'stop', stopReason: `error:${reason.toLowerCase()}` };
}

function budgetStop(dimension: string | undefined): string {
  const stopReason = `budget_exhausted:${dimension ?? ''}`;
  return isStopReason(stopReason) ? stopReason : 'error:budget_exhausted';
}
