import { describe, expect, it } from 'vitest';
import { afterSlotChange, pauseHolds, type SlotChange, type SlotKnowledge } from './pause.ts';

const NOTHING = { pausedSince: null, changedAt: null };
const HOUR_MS = 3_600_000;
const at = (ms: number) => new Date(10 * HOUR_MS + ms);

/** The state after a change at `ms`, recorded at `nowMs`. */
const after = (known: SlotKnowledge, change: SlotChange['change'], ms: number, nowMs = ms) =>
  afterSlotChange(known, { change, at: at(ms) }, at(nowMs));

describe('slot state', () => {
  it('applies pauses and resumptions in the order of their times (SB-4)', () => {
    const paused = after(NOTHING, 'paused', 10);
    expect(paused.pausedSince).toEqual(at(10));
    const resumed = after(paused, 'resumed', 20);
    expect(resumed.pausedSince).toBeNull();
    expect(after(resumed, 'paused', 10, 30)).toBe(resumed);
    expect(after(resumed, 'paused', 30).pausedSince).toEqual(at(30));
  });

  it('rejects grants signed before the pause, and accepts later ones (SB-4)', () => {
    const holds = (known: SlotKnowledge, grantMs?: number) =>
      pauseHolds(known, grantMs === undefined ? undefined : at(grantMs), at(10));
    expect(holds(NOTHING)).toBe(false);
    const paused = after(NOTHING, 'paused', 0);
    expect(holds(paused)).toBe(true);
    expect(holds(paused, 1_000)).toBe(true);
    expect(holds(paused, 5_000)).toBe(true);
    expect(holds(paused, 5_001)).toBe(false);
  });

  it('ends a pause that spawn-budget recorded with a clock that is ahead (BD-3)', () => {
    const paused = after(NOTHING, 'paused', HOUR_MS, 0);
    expect(paused.pausedSince).toEqual(at(0));
    expect(pauseHolds(paused, at(7_000), at(2_000))).toBe(false);
    expect(after(paused, 'resumed', 2_000).pausedSince).toBeNull();
  });

  it('ends a pause that the supervisor recorded with a clock that was ahead (BD-3)', () => {
    const paused = after(NOTHING, 'paused', HOUR_MS);
    expect(pauseHolds(paused, undefined, at(2_000))).toBe(true);
    expect(pauseHolds(paused, at(7_000), at(2_000))).toBe(false);
    expect(after(paused, 'resumed', 2_000)).toEqual({ pausedSince: null, changedAt: at(2_000) });
  });

  it('tolerates a clock of spawn-budget that is ahead by the leeway (SB-4)', () => {
    const paused = after(NOTHING, 'paused', 60_000, 0);
    expect(pauseHolds(paused, at(65_000), at(0))).toBe(true);
    expect(after(paused, 'resumed', 59_999, 0)).toBe(paused);
  });
});
