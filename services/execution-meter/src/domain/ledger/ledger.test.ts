import { isWritError } from '@writ/kernel';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Amount, DIMENSIONS, NOTHING, plus } from './amount.ts';
import { type Balance, emptyBalance, LEVELS, type Level } from './balance.ts';
import { type Entry, heldAmount, isHolding } from './entry.ts';
import { type LedgerEvent, reduce } from './reduce.ts';
import { amountOf, NO_USAGE, type Spending } from './spending.ts';

const AGENTS = ['a', 'b', 'c'] as const;
type Agent = (typeof AGENTS)[number];

/**
 * Returns the balance rows of an agent: each agent has its own row on the agent level; the rows of all other levels are
 * shared.
 */
function rowsOf(agent: Agent): readonly { readonly id: string; readonly level: Level }[] {
  return LEVELS.map((level) => ({ level, id: level === 'agent' ? `agent:${agent}` : level }));
}

function spending(tokens: number, cost: number): Spending {
  const usage = { ...NO_USAGE, input: BigInt(tokens) };
  return { usage, cost: BigInt(cost), turns: 1n, estimated: false, failed: false };
}

const small = fc.nat({ max: 60 });
const command = fc.record({
  agent: fc.constantFrom(...AGENTS),
  entry: fc.nat({ max: 3 }),
  event: fc.oneof(
    fc.record({
      type: fc.constant('reserve' as const),
      kind: fc.constantFrom('call' as const, 'reserve' as const),
      hold: fc.tuple(small, small).map(([tokens, cost]) => {
        return { usage: { ...NO_USAGE, input: BigInt(tokens) }, cost: BigInt(cost), turns: 1n };
      }),
    }),
    fc.record({
      type: fc.constantFrom('settle' as const, 'consume' as const),
      spent: fc.tuple(small, small).map(([tokens, cost]) => spending(tokens, cost)),
    }),
    fc.record({
      type: fc.constantFrom('sent', 'release', 'expire', 'open', 'close'),
    }) as fc.Arbitrary<LedgerEvent>,
  ) as fc.Arbitrary<LedgerEvent>,
});
const caps = fc.record(
  {
    tokens: fc.bigInt({ min: 0n, max: 200n }),
    cost: fc.bigInt({ min: 0n, max: 200n }),
    turns: fc.bigInt({ min: 0n, max: 8n }),
  },
  { requiredKeys: [] },
);

/** Reference model: sums over all entries. */
function modelSums(entries: ReadonlyMap<string, Entry>, rowId: string) {
  let used: Amount = NOTHING;
  let reserved: Amount = NOTHING;
  let consumed: Amount = NOTHING;
  for (const [key, entry] of entries) {
    if (rowId.startsWith('agent:') && !key.startsWith(`${rowId}/`)) continue;
    used = plus(used, amountOf(entry.spent));
    if (entry.kind === 'consume') consumed = plus(consumed, amountOf(entry.spent));
    if (isHolding(entry)) reserved = plus(reserved, heldAmount(entry.held));
  }
  return { used, reserved, consumed };
}

it('never lets reservations exceed a cap of any level and leaves nothing reserved (EM-3)', () => {
  fc.assert(
    fc.property(
      fc.array(caps, { minLength: 7, maxLength: 7 }),
      fc.array(command, { maxLength: 60 }),
      (levelCaps, commands) => {
        const rows = new Map<string, Balance>();
        const entries = new Map<string, Entry>();
        const tabs = new Map<Agent, 'open' | 'closed'>();
        for (const { id, level } of AGENTS.flatMap(rowsOf)) {
          if (!rows.has(id)) rows.set(id, emptyBalance(level, levelCaps[rows.size] ?? {}));
        }
        const run = (agent: Agent, key: string, event: LedgerEvent): void => {
          const before = rowsOf(agent).flatMap(({ id }) => rows.get(id) ?? []);
          const entry = entries.get(key);
          const tab = tabs.get(agent) ?? 'open';
          const step = reduce({ tab, levels: before, ...(entry && { entry }) }, event);
          tabs.set(agent, step.ledger.tab);
          if (step.ledger.entry !== undefined) entries.set(key, step.ledger.entry);
          for (const [index, { id }] of rowsOf(agent).entries()) {
            const after = step.ledger.levels[index];
            if (after !== undefined) rows.set(id, after);
          }
          expect(step.refusal === undefined || step.ledger.entry === entry).toBe(true);
        };
        const check = (): void => {
          for (const [id, { used, reserved, debt, caps }] of rows) {
            const sums = modelSums(entries, id);
            expect({ used, reserved }).toEqual({ used: sums.used, reserved: sums.reserved });
            for (const dimension of DIMENSIONS) {
              const cap = caps[dimension];
              const throughReservations =
                used[dimension] + reserved[dimension] - debt[dimension] - sums.consumed[dimension];
              if (cap !== undefined) expect(throughReservations <= cap).toBe(true);
            }
          }
        };
        for (const { agent, entry, event } of commands) {
          const key = `agent:${agent}/${entry}`;
          try {
            run(agent, key, event);
          } catch (error) {
            if (!isWritError(error)) throw error;
          }
          check();
        }
        for (const key of entries.keys()) {
          const agent = AGENTS.find((name) => key.startsWith(`agent:${name}/`)) ?? 'a';
          run(agent, key, { type: 'expire' });
        }
        check();
        for (const { reserved } of rows.values()) expect(reserved).toEqual(NOTHING);
      },
    ),
    { numRuns: 300 },
  );
});
