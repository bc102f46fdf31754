import fc from 'fast-check';
import { expect, it } from 'vitest';
import { haltedMs } from './halted-time.ts';

const MINUTES = 30;
const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute));

/** A halt, in minutes. */
interface Period {
  readonly from: number;
  readonly to: number;
}

const period: fc.Arbitrary<Period> = fc
  .tuple(fc.nat(MINUTES), fc.nat(MINUTES))
  .map(([a, b]) => ({ from: Math.min(a, b), to: Math.max(a, b) }));

/**
 * Returns the total number of minutes by which lifting all halts extends an approval that has been waiting since
 * `waitingSince`.
 */
function added(halts: readonly Period[], waitingSince: number): number {
  const lifts = halts.map((halt) => {
    const others = halts.filter((other) => other.from <= halt.to && other.to > halt.to);
    const ended = {
      orderedAt: at(halt.from),
      liftedAt: at(halt.to),
      others: others.map(({ from }) => ({ orderedAt: at(from) })),
    };
    return haltedMs(ended, at(waitingSince)) / 60_000;
  });
  return lifts.reduce((sum, minutes) => sum + minutes, 0);
}

it('extends an approval by the whole time of overlapping halts, whichever is lifted first (SV-5, SV-9)', () => {
  expect(
    added(
      [
        { from: 0, to: 8 },
        { from: 5, to: 9 },
      ],
      0,
    ),
  ).toBe(9);
  expect(
    added(
      [
        { from: 0, to: 9 },
        { from: 5, to: 8 },
      ],
      0,
    ),
  ).toBe(9);
  expect(
    added(
      [
        { from: 0, to: 8 },
        { from: 5, to: 9 },
      ],
      6,
    ),
  ).toBe(3);
});

it('extends an approval by exactly those minutes of its wait in which a halt was in force (SV-5, SV-9)', () => {
  const halts = fc.uniqueArray(period, { selector: ({ to }) => to, maxLength: 6 });
  fc.assert(
    fc.property(halts, fc.nat(MINUTES), (periods, waitingSince) => {
      const minutes = Array.from({ length: MINUTES }, (_, minute) => minute);
      const halted = minutes.filter(
        (minute) =>
          minute >= waitingSince && periods.some(({ from, to }) => from <= minute && minute < to),
      );
      expect(added(periods, waitingSince)).toBe(halted.length);
    }),
  );
});
