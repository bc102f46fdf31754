import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Amount, type Caps, NOTHING, plus } from './amount.ts';
import { type Division, divide, type Slice, termsOf } from './cap-slices.ts';

const SLICES = 4;
const PERCENTS = [50, 80, 100];

type Act =
  | { readonly type: 'reserve' | 'release' | 'settle'; readonly amount: bigint }
  | { readonly type: 'cap'; readonly cap: bigint | undefined };

const act: fc.Arbitrary<Act & { readonly slice: number }> = fc
  .oneof(
    {
      weight: 12,
      arbitrary: fc.record({
        type: fc.constantFrom('reserve', 'reserve', 'release', 'settle', 'settle'),
        amount: fc.bigInt({ min: 0n, max: 30n }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        type: fc.constant('cap'),
        cap: fc.option(fc.bigInt({ min: 0n, max: 600n }), { nil: undefined }),
      }),
    },
  )
  .chain((one) => fc.nat(SLICES - 1).map((slice) => ({ ...(one as Act), slice })));

/** Reference model: a level with a single account, which refuses reservations above its cap. */
class PlainAccount {
  cap: bigint | undefined;
  used = 0n;
  reserved = 0n;

  accepts(hold: bigint): boolean {
    return this.cap === undefined || this.used + this.reserved + hold <= this.cap;
  }

  /** The thresholds that the settled amount has reached. */
  get reached(): readonly number[] {
    const { cap, used } = this;
    return cap === undefined ? [] : PERCENTS.filter((each) => used * 100n >= cap * BigInt(each));
  }
}

interface Booking {
  readonly used: bigint;
  readonly reserved: bigint;
  readonly isReservation: boolean;
}

/**
 * The same level divided into slices. A booking within the grant of its slice reads only this slice; any other booking
 * reads all slices.
 */
class SlicedAccount {
  caps: Caps = {};
  readonly used = Array.from({ length: SLICES }, () => 0n);
  readonly reserved = Array.from({ length: SLICES }, () => 0n);
  terms = '';
  readonly grants = new Map<number, bigint>();
  isWatched = false;
  /** Number of bookings that read one slice (`own`) or all slices (`all`). */
  readonly turns = { own: 0, all: 0 };

  get total(): bigint {
    return sum(this.used) + sum(this.reserved);
  }

  /** Books to a slice; false when a cap refuses a reservation. */
  book(slice: number, { used, reserved, isReservation }: Booking): boolean {
    const after = (this.used[slice] ?? 0n) + (this.reserved[slice] ?? 0n) + used + reserved;
    const isCapped = this.caps.tokens !== undefined;
    const isCurrent = this.terms === termsOf(this.caps, PERCENTS);
    const mayBook =
      !isCapped || (after <= (this.grants.get(slice) ?? -1n) && !(used > 0n && this.isWatched));
    if (isCurrent && mayBook) {
      this.turns.own += 1;
      this.#add(slice, used, reserved);
      return true;
    }
    this.turns.all += 1;
    if (isReservation && isCapped && this.total + reserved > (this.caps.tokens ?? 0n)) return false;
    this.#add(slice, used, reserved);
    this.#divide(slice, reserved);
    return true;
  }

  /** The maximum amount that can be settled without reading all slices. */
  get atMost(): bigint {
    return sum(
      this.slices.map(({ booked, granted }) => {
        if (booked.tokens > granted.tokens) return booked.tokens;
        return granted.tokens;
      }),
    );
  }

  /** The next threshold that the settled amount has not reached. */
  get nextThreshold(): bigint | undefined {
    const cap = this.caps.tokens ?? 0n;
    const amounts = PERCENTS.map((percent) => (cap * BigInt(percent) + 99n) / 100n);
    return amounts.find((amount) => amount > sum(this.used));
  }

  #add(slice: number, used: bigint, reserved: bigint): void {
    this.used[slice] = (this.used[slice] ?? 0n) + used;
    this.reserved[slice] = (this.reserved[slice] ?? 0n) + reserved;
  }

  #divide(own: number, wanted: bigint): void {
    const terms = termsOf(this.caps, PERCENTS);
    if (terms !== this.terms) this.grants.clear();
    this.terms = terms;
    const slices = this.slices;
    const level = { caps: this.caps, percents: PERCENTS, used: tokens(sum(this.used)), slices };
    const division: Division | undefined =
      terms === '' ? undefined : divide(level, { index: own, wanted: tokens(wanted) });
    if (division === undefined) {
      this.grants.clear();
      this.terms = '';
      return;
    }
    this.isWatched = division.isWatched;
    for (const [index, grant] of division.grants.entries()) {
      if (index === own || this.grants.has(index)) this.grants.set(index, grant.tokens);
    }
  }

  get slices(): readonly Slice[] {
    return this.used.map((used, index) => ({
      index,
      booked: tokens(used + (this.reserved[index] ?? 0n)),
      granted: tokens(this.grants.get(index) ?? 0n),
    }));
  }
}

function tokens(amount: bigint): Amount {
  return { ...NOTHING, tokens: amount };
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n);
}

/** Applies one step to both accounts and compares the results. */
function take(step: Act & { readonly slice: number }, plain: PlainAccount, sliced: SlicedAccount) {
  if (step.type === 'cap') {
    plain.cap = step.cap;
    sliced.caps = step.cap === undefined ? {} : { tokens: step.cap };
    return;
  }
  const { slice, amount } = step;
  const held = sliced.reserved[slice] ?? 0n;
  const reached = plain.reached;
  const { own } = sliced.turns;
  if (step.type === 'reserve') {
    const isAccepted = plain.accepts(amount);
    if (isAccepted) plain.reserved += amount;
    const change = { used: 0n, reserved: amount, isReservation: true };
    expect(sliced.book(slice, change)).toBe(isAccepted);
    return;
  }
  const settled = step.type === 'settle' ? amount : 0n;
  // The settlement or release ends the hold; the settled amount may exceed the hold.
  plain.reserved -= held;
  plain.used += settled;
  sliced.book(slice, { used: settled, reserved: -held, isReservation: false });
  const isOwn = sliced.turns.own > own;
  if (isOwn) expect(plain.reached).toEqual(reached);
}

describe('divide', () => {
  it('accepts and refuses the same bookings as a single account, and never grants more than the cap (EM-3)', () => {
    const turns = { own: 0, all: 0 };
    fc.assert(
      fc.property(fc.array(act, { minLength: 20, maxLength: 60 }), (steps) => {
        const [plain, sliced] = [new PlainAccount(), new SlicedAccount()];
        const cap = { type: 'cap', cap: 300n, slice: 0 } as const;
        for (const step of [cap, ...steps]) {
          take(step, plain, sliced);
          expect(sliced.total).toBe(plain.used + plain.reserved);
          if (sliced.terms === '' || sliced.terms !== termsOf(sliced.caps, PERCENTS)) continue;
          expect(sum([...sliced.grants.values()])).toBeLessThanOrEqual(plain.cap ?? 0n);
          const next = sliced.nextThreshold;
          if (!sliced.isWatched && next !== undefined) expect(sliced.atMost).toBeLessThan(next);
          for (const { index, booked, granted } of sliced.slices) {
            if (sliced.grants.has(index)) expect(booked.tokens).toBeLessThanOrEqual(granted.tokens);
          }
        }
        turns.own += sliced.turns.own;
        turns.all += sliced.turns.all;
      }),
      { numRuns: 2_000 },
    );
    // Both kinds of bookings occur often.
    expect(Math.min(turns.own, turns.all)).toBeGreaterThan(1_000);
  });

  it('grants a slice half of the remaining amount, and leaves the rest for the next slice (EM-3)', () => {
    const caps = { tokens: 10_000n };
    const level = { caps, percents: [], used: NOTHING };
    const first = { index: 3, booked: tokens(100n), granted: NOTHING };
    const grants = divide({ ...level, slices: [first] }, { index: 3, wanted: tokens(100n) });
    expect(grants).toEqual({ grants: [tokens(5_050n)], isWatched: false });
    const slices = [
      { ...first, granted: tokens(5_050n) },
      { index: 5, booked: tokens(100n), granted: NOTHING },
    ];
    const both = divide({ ...level, slices }, { index: 5, wanted: tokens(100n) });
    expect(both?.grants).toEqual([tokens(5_050n), tokens(2_550n)]);
  });

  it('reduces the unused grants of other slices when no amount is free (EM-3)', () => {
    const booked = tokens(10n);
    const slices = [
      { index: 0, booked, granted: tokens(950n) },
      { index: 1, booked: plus(booked, tokens(40n)), granted: tokens(50n) },
    ];
    const level = { caps: { tokens: 1_000n }, percents: [], used: NOTHING, slices };
    const { grants = [] } = divide(level, { index: 1, wanted: tokens(40n) }) ?? {};
    expect(grants).toEqual([tokens(245n), tokens(285n)]);
  });
});
