import { describe, expect, it } from 'vitest';
import { afterSlotChange, pauseHolds } from './pause.ts';

const NOTHING = { pausedSince: null, changedAt: null };
const at = (ms: number) => new Date(1_000_000 + ms);

describe('what is known of a pause', () => {
  it('follows pauses and resumptions in the order in which they happened (SB-4)', () => {
    const paused = afterSlotChange(NOTHING, 'paused', at(10));
    expect(paused.pausedSince).toEqual(at(10));
    const resumed = afterSlotChange(paused, 'resumed', at(20));
    expect(resumed.pausedSince).toBeNull();
    expect(afterSlotChange(resumed, 'paused', at(10))).toBe(resumed);
    expect(afterSlotChange(resumed, 'paused', at(30)).pausedSince).toEqual(at(30));
  });

  it('holds against every grant that was signed before it, and no later one (SB-4)', () => {
    expect(pauseHolds(NOTHING)).toBe(false);
    const paused = afterSlotChange(NOTHING, 'paused', at(0));
    expect(pauseHolds(paused)).toBe(true);
    expect(pauseHolds(paused, at(1_000))).toBe(true);
    expect(pauseHolds(paused, at(5_000))).toBe(true);
    expect(pauseHolds(paused, at(5_001))).toBe(false);
  });
});
