import { expect, it } from 'vitest';
import { countEffects, isNothingDone } from './count-effects.ts';

it('counts a call whose outcome stays unknown as pending, because the tool may have been executed (SV-7, TG-8)', () => {
  const call = {
    isTool: true,
    isApproved: true,
    child: undefined,
    hasEnded: false,
    outcome: undefined,
  } as const;
  const effects = countEffects([
    // The approval of its outcome has expired.
    { ...call, stopReason: 'outcome_unknown:issue_refund', status: 'unknown' },
    { ...call, stopReason: 'supervisor_block:limit', status: undefined },
  ]);
  expect(effects).toMatchObject({ effects_pending: 1, effects_refused: 1, effects_done: 0 });
  expect(isNothingDone(effects)).toBe(false);
});
