import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { activeMsAt, cut, lapsed, STANDING_CLOCK, seen, stopped } from './active-clock.ts';

const at = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms);

describe('the active clock', () => {
  it('runs from the first sign of life to the stop, and stands in between (EM-1)', () => {
    const working = seen(STANDING_CLOCK, at(0));
    expect(activeMsAt(working, at(700))).toBe(700);
    const waiting = stopped(working, at(1_000));
    expect(activeMsAt(waiting, at(100_000))).toBe(1_000);
    expect(activeMsAt(seen(waiting, at(200_000)), at(200_500))).toBe(1_500);
  });

  it('is cut at the last sign of life when nobody kept it', () => {
    const clock = seen(seen(STANDING_CLOCK, at(0)), at(400));
    expect(activeMsAt(cut(clock), at(9_000))).toBe(400);
    expect(cut(STANDING_CLOCK)).toMatchObject({ activeMs: 0, activeSince: null });
  });

  it('adds up exactly the time between life and stop, in any order of events (EM-1)', () => {
    const event = fc.record({
      wait: fc.nat(1_000),
      kind: fc.constantFrom('seen', 'stopped', 'cut'),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        let now = 0;
        let clock = STANDING_CLOCK;
        let expected = 0;
        let since: number | undefined;
        let last: number | undefined;
        for (const { wait, kind } of events) {
          now += wait;
          if (kind === 'seen') {
            clock = seen(clock, at(now));
            since ??= now;
            last = now;
          } else {
            const end = kind === 'cut' ? (last ?? now) : now;
            clock = kind === 'cut' ? cut(clock) : stopped(clock, at(now));
            if (since !== undefined) expected += Math.max(0, end - since);
            since = undefined;
            if (kind === 'stopped') last = now;
          }
          const running = since === undefined ? 0 : now - since;
          expect(activeMsAt(clock, at(now))).toBe(expected + running);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('stands from the end of a lease on, however late that is told (EM-1)', () => {
    const working = seen(STANDING_CLOCK, at(0));
    expect(activeMsAt(lapsed(working, at(400)), at(9_000))).toBe(400);
    const back = seen(seen(working, at(5_000)), at(6_000));
    expect(activeMsAt(lapsed(back, at(400)), at(6_100))).toBe(500);
    // News of a lease that an older stop is about.
    const again = seen(stopped(working, at(1_000)), at(2_000));
    expect(lapsed(again, at(700))).toBe(again);
    expect(lapsed(stopped(working, at(1_000)), at(700)).activeMs).toBe(1_000);
  });

  it('counts exactly the time under a lease, but for what an agent did before late news of a lapse (EM-1)', () => {
    const lease = fc.record({
      lasts: fc.integer({ min: 1, max: 1_000 }),
      /** Signs of life after the first, from its beginning. */
      signs: fc.array(fc.nat(1_000), { maxLength: 4 }),
      away: fc.integer({ min: 1, max: 1_000 }),
      /** The news of its end comes after as many signs of life of the next lease. */
      newsAfter: fc.nat(5),
    });
    fc.assert(
      fc.property(fc.array(lease, { minLength: 1, maxLength: 8 }), (leases) => {
        let clock = STANDING_CLOCK;
        let begin = 0;
        let expected = 0;
        let untold: { readonly end: number; after: number } | undefined;
        for (const { lasts, signs, away, newsAfter } of leases) {
          const shown = [0, ...signs.filter((sign) => sign <= lasts)].sort((a, b) => a - b);
          for (const sign of shown) {
            clock = seen(clock, at(begin + sign));
            if (untold === undefined) continue;
            untold.after -= 1;
            if (untold.after > 0 && sign !== shown.at(-1)) continue;
            clock = lapsed(clock, at(untold.end));
            untold = undefined;
            expected -= sign;
          }
          const end = begin + lasts;
          expected += lasts;
          if (newsAfter === 0) clock = lapsed(clock, at(end));
          else untold = { end, after: newsAfter };
          begin = end + away;
        }
        if (untold !== undefined) clock = lapsed(clock, at(untold.end));
        expect(activeMsAt(clock, at(begin))).toBe(expected);
      }),
      { numRuns: 300 },
    );
  });

  it('never runs backwards when the machine’s clock does', () => {
    const clock = seen(STANDING_CLOCK, at(1_000));
    expect(activeMsAt(clock, at(0))).toBe(0);
    expect(stopped(clock, at(0)).activeMs).toBe(0);
  });
});
