import { describe, expect, it } from 'vitest';
import type { Caps } from './amount.ts';
import { emptyBalance, remainingBudget } from './balance.ts';
import { DEFAULT_NEAR_BUDGET, isNearBudget } from './near-budget.ts';
import { type Ledger, type LedgerEvent, reduce, type Step } from './reduce.ts';
import { NO_USAGE, type Spending } from './spending.ts';

function ledger(agent: Caps, run: Caps = {}): Ledger {
  return { tab: 'open', levels: [emptyBalance('agent', agent), emptyBalance('run', run)] };
}

function spent(tokens: bigint, cost = 0n, turns = 1n): Spending {
  return { usage: { ...NO_USAGE, output: tokens }, cost, turns, estimated: false, failed: false };
}

function reserve(tokens: bigint, kind: 'call' | 'reserve' = 'call'): LedgerEvent {
  return {
    type: 'reserve',
    kind,
    hold: { usage: { ...NO_USAGE, input: tokens }, cost: 0n, turns: 1n },
  };
}

function after(start: Ledger, ...events: LedgerEvent[]): Step {
  let step: Step | undefined;
  for (const event of events) step = reduce(step?.ledger ?? start, event);
  if (step === undefined) throw new Error('no events');
  return step;
}

describe('consume', () => {
  it('books first and then reports the first exceeded cap in the order tokens, cost, turns (EM-2)', () => {
    const start = ledger({ tokens: 4000n, cost: 5n, turns: 0n });
    const step = reduce(start, { type: 'consume', spent: spent(4200n, 9n) });
    expect(step.exceeded).toEqual({
      level: 'agent',
      dimension: 'tokens',
      used: 4200n,
      limit: 4000n,
    });
    expect(step.ledger.levels[0]?.used).toEqual({ tokens: 4200n, cost: 9n, turns: 1n });
  });

  it('checks the tokens of all levels before the cost of any level (EM-2)', () => {
    const step = reduce(ledger({ cost: 1n }, { tokens: 10n }), {
      type: 'consume',
      spent: spent(11n, 2n),
    });
    expect(step.exceeded).toMatchObject({ level: 'run', dimension: 'tokens' });
  });

  it('is rejected on a closed tab', () => {
    const closed = after(ledger({}), { type: 'close' }).ledger;
    expect(() => reduce(closed, { type: 'consume', spent: spent(1n) })).toThrow(/closed/);
  });
});

describe('reserve', () => {
  it('holds the amount on every level or on none (EM-3)', () => {
    const step = reduce(ledger({ tokens: 100n }, { tokens: 50n }), reserve(51n));
    expect(step.refusal).toEqual({ level: 'run', dimension: 'tokens', used: 51n, limit: 50n });
    expect(step.ledger.levels.map(({ reserved }) => reserved.tokens)).toEqual([0n, 0n]);
  });

  it('returns the minimum of all levels as the remaining budget (EM-3)', () => {
    const { ledger: held } = reduce(
      ledger({ tokens: 100n, cost: 7n }, { tokens: 60n }),
      reserve(20n),
    );
    expect(remainingBudget(held.levels)).toEqual({ tokens: 40n, cost: 7n });
  });
});

describe('settle', () => {
  it('books usage above the reservation as debt, which blocks further calls (EM-3)', () => {
    const step = after(ledger({ tokens: 100n }), reserve(40n), {
      type: 'settle',
      spent: spent(101n),
    });
    expect(step.ledger.entry).toMatchObject({ state: 'settled', exceeded: true });
    expect(step.ledger.levels[0]).toMatchObject({
      used: { tokens: 101n },
      reserved: { tokens: 0n },
      debt: { tokens: 61n },
    });
    expect(step.exceeded).toMatchObject({ dimension: 'tokens', used: 101n, limit: 100n });
    const { entry: _, ...next } = step.ledger;
    expect(reduce(next, reserve(0n)).refusal).toMatchObject({ dimension: 'tokens' });
  });

  it('is idempotent (EM-3)', () => {
    const once = after(ledger({}), reserve(40n), { type: 'settle', spent: spent(10n) });
    const twice = reduce(once.ledger, { type: 'settle', spent: spent(99n) });
    expect(twice.ledger).toEqual(once.ledger);
  });

  it('is accepted on a closed tab (EM-3)', () => {
    const step = after(
      ledger({}),
      reserve(40n),
      { type: 'close' },
      {
        type: 'settle',
        spent: spent(10n),
      },
    );
    expect(step.ledger.levels[0]?.used.tokens).toBe(10n);
  });

  it('replaces the estimate of an expiry (EM-3)', () => {
    const step = after(
      ledger({}),
      reserve(40n, 'reserve'),
      { type: 'expire' },
      {
        type: 'settle',
        spent: spent(10n),
      },
    );
    expect(step.ledger.levels[0]).toMatchObject({
      used: { tokens: 10n, turns: 1n },
      usage: { input: 0n, output: 10n },
      estimatedTurns: 0n,
    });
  });

  it('requires a reservation that was not released', () => {
    const settle: LedgerEvent = { type: 'settle', spent: spent(1n) };
    expect(() => reduce(ledger({}), settle)).toThrow(/no reservation/);
    expect(() => after(ledger({}), reserve(1n), { type: 'release' }, settle)).toThrow(/released/);
  });
});

describe('expiry', () => {
  it('releases a call that was never sent (EM-3)', () => {
    const step = after(ledger({}), reserve(40n), { type: 'expire' });
    expect(step.ledger.entry?.state).toBe('released');
    expect(step.ledger.levels[0]).toMatchObject({ used: { tokens: 0n }, reserved: { tokens: 0n } });
  });

  it.each([
    ['a call that was sent', [reserve(40n), { type: 'sent' }]],
    ['a reservation without a call', [reserve(40n, 'reserve')]],
  ] as const)('settles %s in full, estimated (EM-3)', (_, events) => {
    const step = after(ledger({}), ...events, { type: 'expire' });
    expect(step.ledger.entry).toMatchObject({ state: 'settled', byExpiry: true });
    expect(step.ledger.levels[0]).toMatchObject({
      used: { tokens: 40n, turns: 1n },
      reserved: { tokens: 0n, turns: 0n },
      estimatedTurns: 1n,
    });
  });
});

it('rejects the release of a sent or settled reservation (EM-3)', () => {
  const release: LedgerEvent = { type: 'release' };
  expect(() => after(ledger({}), reserve(1n), { type: 'sent' }, release)).toThrow(
    /must be settled/,
  );
  expect(() =>
    after(ledger({}), reserve(1n), { type: 'settle', spent: spent(1n) }, release),
  ).toThrow(/is settled and cannot/);
});

describe('near budget', () => {
  const near = (caps: Caps, tokens: bigint, cost: bigint): boolean => {
    const { ledger: after } = reduce(ledger(caps), { type: 'consume', spent: spent(tokens, cost) });
    return after.levels.some((balance) => isNearBudget(balance, DEFAULT_NEAR_BUDGET));
  };

  it('applies when 512 tokens or a tenth of the cost cap remain (EM-5)', () => {
    expect(near({ tokens: 1000n }, 487n, 0n)).toBe(false);
    expect(near({ tokens: 1000n }, 488n, 0n)).toBe(true);
    expect(near({ cost: 1000n }, 0n, 899n)).toBe(false);
    expect(near({ cost: 1000n }, 0n, 900n)).toBe(true);
    expect(near({}, 1_000_000n, 1_000_000n)).toBe(false);
  });
});
