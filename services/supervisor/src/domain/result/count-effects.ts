import type { EffectsView } from '@writ/policy';

/** An action with an effect: a delegation, or a call of a tool that is not read-only. */
export interface EffectRecord {
  readonly isTool: boolean;
  readonly isApproved: boolean;
  /**
   * Why the action was not executed, or why its outcome stays unknown; undefined when it was approved or its approval is
   * pending.
   */
  readonly stopReason: string | undefined;
  /**
   * Of a delegation: `made` when its child was delivered to a worker or has acted, `none` when the child got no slot or
   * could not be set up; undefined for other actions, before the agent repeats an approved delegation, and during setup.
   */
  readonly child: 'made' | 'none' | undefined;
  /** Whether the agent has ended, so that it does not repeat a delegation, and its pending approvals are withdrawn. */
  readonly hasEnded: boolean;
  /** Undefined without a receipt. */
  readonly status: 'ok' | 'error' | 'refused' | 'unknown' | 'void' | undefined;
  /** Undefined when the call was not executed. */
  readonly outcome: 'ok' | 'failed' | 'unknown' | undefined;
}

/** Counts the actions with an effect by state (SV-7). */
export function countEffects(records: readonly EffectRecord[]): EffectsView {
  const of = (state: EffectState) => records.filter((record) => stateOf(record) === state).length;
  return {
    effects_done: of('done'),
    effects_failed: of('failed'),
    effects_refused: of('refused'),
    effects_pending: of('pending'),
  };
}

/** Whether an action with an effect was refused, and none took effect or is pending. */
export function isNothingDone(effects: EffectsView): boolean {
  const { effects_done, effects_pending, effects_refused } = effects;
  return effects_refused > 0 && effects_done === 0 && effects_pending === 0;
}

/**
 * State of an action with an effect; `pending` until its approval is decided or the agent ends, and then, for a
 * delegation, until the child is set up or the agent ends, and for a tool call, until a receipt with a known outcome
 * arrives.
 */
type EffectState = 'done' | 'failed' | 'refused' | 'pending';

function stateOf(record: EffectRecord): EffectState {
  const { isTool, isApproved, stopReason, child, hasEnded, status, outcome } = record;
  // The tool may have been executed, also after the approval of the outcome has expired.
  if (status === 'unknown') return 'pending';
  if (stopReason !== undefined || child === 'none') return 'refused';
  // The end of the agent withdraws its pending approvals.
  if (!isApproved) return hasEnded ? 'failed' : 'pending';
  // A delegation is done once the child is set up, regardless of the child's answer.
  if (child === 'made') return 'done';
  if (!isTool) return hasEnded ? 'failed' : 'pending';
  switch (status) {
    case 'ok':
      return outcome === 'failed' ? 'failed' : 'done';
    case 'refused':
      return 'refused';
    case 'error':
    // The writ was voided: the run ended before the call.
    case 'void':
      return 'failed';
    default:
      return 'pending';
  }
}
