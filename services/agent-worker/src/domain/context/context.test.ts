import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compact,
  exchangesOf,
  planSummary,
  type Turn as RoleTurn,
  slidingWindow,
  tokensOf,
  truncateToolResults,
} from './shorten-conversation.ts';

interface Turn extends RoleTurn {
  readonly text: string;
}

const count = ({ text }: Turn): number => text.length;
const turn = (role: Turn['role'], text: string): Turn => ({ role, text });
const marker = (missing: number): Turn => turn('user', `[${missing}]`);

const talk = [
  turn('system', 'rules'),
  turn('user', 'question'),
  turn('assistant', 'call a'),
  turn('tool', 'result a'),
  turn('assistant', 'call b'),
  turn('tool', 'result b1'),
  turn('tool', 'result b2'),
  turn('user', 'and now?'),
];

const conversations = fc
  .tuple(
    fc.array(fc.constant('system' as const), { maxLength: 2 }),
    fc.array(fc.constantFrom('user' as const, 'assistant' as const, 'tool' as const), {
      minLength: 1,
      maxLength: 12,
    }),
    fc.array(fc.nat({ max: 30 }), { minLength: 14, maxLength: 14 }),
  )
  .map(([system, roles, lengths]) =>
    [...system, 'user' as const, ...roles].map((role, index) =>
      turn(role, `${index}${'x'.repeat(lengths[index] ?? 0)}`),
    ),
  );

describe('a view of a conversation', () => {
  it('keeps instructions, order and whole exchanges for any budget (AG-8)', () => {
    fc.assert(
      fc.property(
        conversations,
        fc.nat({ max: 300 }),
        fc.nat({ max: 5 }),
        (turns, budget, keepLast) => {
          const views = [
            slidingWindow(turns, budget, count),
            compact(turns, budget, count, { keepLast, marker }),
          ];
          const { head, exchanges } = exchangesOf(turns);
          for (const view of views) {
            const kept = view.filter((each) => turns.includes(each));
            expect(kept).toEqual(turns.filter((each) => kept.includes(each)));
            expect(view.slice(0, head.length)).toEqual(head);
            expect(view.slice(-(exchanges.at(-1)?.length ?? 0))).toEqual(exchanges.at(-1));
            for (const exchange of exchanges) {
              const there = exchange.filter((each) => view.includes(each)).length;
              expect([0, exchange.length]).toContain(there);
            }
          }
        },
      ),
    );
  });

  it('is the unchanged conversation when it fits the budget (AG-8)', () => {
    const budget = tokensOf(talk, count);
    expect(slidingWindow(talk, budget, count)).toBe(talk);
    expect(compact(talk, budget, count, { keepLast: 1, marker })).toBe(talk);
    expect(planSummary(talk, budget, count, 1)).toBeUndefined();
  });

  it('fits the budget if the instructions and the last exchange fit (AG-8)', () => {
    fc.assert(
      fc.property(conversations, fc.nat({ max: 300 }), (turns, budget) => {
        const { head, exchanges } = exchangesOf(turns);
        const least = tokensOf([...head, ...(exchanges.at(-1) ?? [])], count);
        const used = tokensOf(slidingWindow(turns, budget, count), count);
        expect(used).toBeLessThanOrEqual(Math.max(budget, least));
      }),
    );
  });

  it('contains the instructions and the latest exchanges that fit (AG-8)', () => {
    expect(slidingWindow(talk, 40, count).map(({ text }) => text)).toEqual([
      'rules',
      'call b',
      'result b1',
      'result b2',
      'and now?',
    ]);
  });

  it('is compacted to the first exchange, a marker and the last exchanges (AG-8)', () => {
    const view = compact(talk, 58, count, { keepLast: 2, marker });
    expect(view.map(({ text }) => text)).toEqual([
      'rules',
      'question',
      '[2]',
      'call b',
      'result b1',
      'result b2',
      'and now?',
    ]);
  });

  it('truncates and marks long tool results without splitting a character (AG-8)', () => {
    const results = ['abc😀def', 'abcd'].map((text) => ({ id: 'use-1', text, isError: false }));
    const turns = [{ role: 'tool', results } as const, { role: 'user', text: 'abcdef' } as const];
    expect(truncateToolResults(turns, 4)).toMatchObject([
      { results: [{ text: 'abc\n[cut: 8 characters in all]' }, { text: 'abcd' }] },
      { text: 'abcdef' },
    ]);
  });

  it('separates the turns to summarize from the latest exchanges (AG-8)', () => {
    const plan = planSummary(talk, 40, count, 1);
    expect(plan?.head.map(({ text }) => text)).toEqual(['rules']);
    expect(plan?.older).toHaveLength(6);
    expect(plan?.latest.map(({ text }) => text)).toEqual(['and now?']);
  });
});
