import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { activeMsAt, cut, leaseExpired, STOPPED_CLOCK, seen, stopped } from './active-clock.ts';

const at = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms);

describe('the active clock', () => {
  it('counts time from an activity until the clock is stopped, and no time while it is stopped (EM-1)', () => {
    const working = seen(STOPPED_CLOCK, at(0));
    expect(activeMsAt(working, at(700))).toBe(700);
    const waiting = stopped(working, at(1_000));
    expect(activeMsAt(waiting, at(100_000))).toBe(1_000);
    expect(activeMsAt(seen(waiting, at(200_000)), at(200_500))).toBe(1_500);
  });

  it('excludes the time between the last activity and a restart', () => {
    const clock = seen(seen(STOPPED_CLOCK, at(0)), at(400));
    expect(activeMsAt(cut(clock), at(9_000))).toBe(400);
    expect(cut(STOPPED_CLOCK)).toMatchObject({ activeMs: 0, activeSince: null });
  });

  it('adds up exactly the active time, in any order of events (EM-1)', () => {
    const event = fc.record({
      wait: fc.nat(1_000),
      kind: fc.constantFrom('seen', 'stopped', 'cut'),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        let now = 0;
        let clock = STOPPED_CLOCK;
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

  it('stops at the end of a lease, regardless of when the event arrives (EM-1)', () => {
    const working = seen(STOPPED_CLOCK, at(0));
    expect(activeMsAt(leaseExpired(working, at(400)), at(9_000))).toBe(400);
    const back = seen(seen(working, at(5_000)), at(6_000));
    expect(activeMsAt(leaseExpired(back, at(400)), at(6_100))).toBe(500);
    // An expiry event that is older than the last stop has no effect.
    const again = seen(stopped(working, at(1_000)), at(2_000));
    expect(leaseExpired(again, at(700))).toBe(again);
    expect(leaseExpired(stopped(working, at(1_000)), at(700)).activeMs).toBe(1_000);
  });

  it('counts exactly the leased time, except the time of a new lease before a late expiry event (EM-1)', () => {
    const lease = fc.record({
      lasts: fc.integer({ min: 1, max: 1_000 }),
      /** Activities after the first, relative to the start of the lease. */
      activities: fc.array(fc.nat(1_000), { maxLength: 4 }),
      gapMs: fc.integer({ min: 1, max: 1_000 }),
      /** The expiry event arrives after this many activities of the next lease. */
      eventAfter: fc.nat(5),
    });
    fc.assert(
      fc.property(fc.array(lease, { minLength: 1, maxLength: 8 }), (leases) => {
        let clock = STOPPED_CLOCK;
        let begin = 0;
        let expected = 0;
        let pending: { readonly end: number; after: number } | undefined;
        for (const { lasts, activities, gapMs, eventAfter } of leases) {
          const times = [0, ...activities.filter((ms) => ms <= lasts)].sort((a, b) => a - b);
          for (const ms of times) {
            clock = seen(clock, at(begin + ms));
            if (pending === undefined) continue;
            pending.after -= 1;
            if (pending.after > 0 && ms !== times.at(-1)) continue;
            clock = leaseExpired(clock, at(pending.end));
            pending = undefined;
            expected -= ms;
          }
          const end = begin + lasts;
          expected += lasts;
          if (eventAfter === 0) clock = leaseExpired(clock, at(end));
          else pending = { end, after: eventAfter };
          begin = end + gapMs;
        }
        if (pending !== undefined) clock = leaseExpired(clock, at(pending.end));
        expect(activeMsAt(clock, at(begin))).toBe(expected);
      }),
      { numRuns: 300 },
    );
  });

  it('never decreases when the system clock is set back', () => {
    const clock = seen(STOPPED_CLOCK, at(1_000));
    expect(activeMsAt(clock, at(0))).toBe(0);
    expect(stopped(clock, at(0)).activeMs).toBe(0);
  });
});
