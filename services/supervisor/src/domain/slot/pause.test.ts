import { describe, expect, it } from 'vitest';
import { afterSlotChange, pauseHolds } from './pause.ts';

const NOTHING = { pausedSince: null, changedAt: null };
const at = (ms: number) => new Date(1_000_000 + ms);

describe('slot state', () => {
  it('applies pauses and resumptions in the order of their times (SB-4)', () => {
    const paused = afterSlotChange(NOTHING, 'paused', at(10));
    expect(paused.pausedSince).toEqual(at(10));
    const resumed = afterSlotChange(paused, 'resumed', at(20));
    expect(resumed.pausedSince).toBeNull();
    expect(afterSlotChange(resumed, 'paused', at(10))).toBe(resumed);
    expect(afterSlotChange(resumed, 'paused', at(30)).pausedSince).toEqual(at(30));
  });

  it('rejects grants signed before the pause, and accepts later ones (SB-4)', () => {
    expect(pauseHolds(NOTHING)).toBe(false);
    const paused = afterSlotChange(NOTHING, 'paused', at(0));
    expect(pauseHolds(paused)).toBe(true);
    expect(pauseHolds(paused, at(1_000))).toBe(true);
    expect(pauseHolds(paused, at(5_000))).toBe(true);
    expect(pauseHolds(paused, at(5_001))).toBe(false);
  });
});
