import type { EffectsView } from '@writ/policy';

/** An action with an effect: a delegation, or a call of a tool that is not read-only. */
export interface EffectRecord {
  readonly isTool: boolean;
  readonly isApproved: boolean;
  /** Why the action stopped; undefined when it did not, and while its approval is pending. */
  readonly stopReason: string | undefined;
  /** Undefined without a receipt. */
  readonly status: 'ok' | 'error' | 'refused' | 'unknown' | 'void' | undefined;
  /** Undefined when the call was not executed. */
  readonly outcome: 'ok' | 'failed' | 'unknown' | undefined;
}

/** Counts what became of the actions with an effect (SV-7): done, failed, refused, or not known yet. */
export function countEffects(records: readonly EffectRecord[]): EffectsView {
  const of = (fate: Fate) => records.filter((record) => fateOf(record) === fate).length;
  return {
    effects_done: of('done'),
    effects_failed: of('failed'),
    effects_refused: of('refused'),
    effects_pending: of('pending'),
  };
}

/** Whether the run has an answer and nothing else: an action with an effect was refused, and none took place. */
export function isNothingDone(effects: EffectsView): boolean {
  const { effects_done, effects_pending, effects_refused } = effects;
  return effects_refused > 0 && effects_done === 0 && effects_pending === 0;
}

type Fate = 'done' | 'failed' | 'refused' | 'pending';

function fateOf({ isTool, isApproved, stopReason, status, outcome }: EffectRecord): Fate {
  if (stopReason !== undefined) return 'refused';
  if (!isApproved) return 'pending';
  // A delegation has taken place once the child runs, whatever its answer.
  if (!isTool) return 'done';
  switch (status) {
    case 'ok':
      return outcome === 'failed' ? 'failed' : 'done';
    case 'refused':
      return 'refused';
    case 'error':
    // Approved, and never called before the run ended.
    case 'void':
      return 'failed';
    default:
      return 'pending';
  }
}
