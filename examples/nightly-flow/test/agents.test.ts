import type { AgentOperations, ToolAnswer } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { agents } from '../src/agents.ts';

/** Runs the counter with one result of its tool. */
async function count(goal: string, answer: ToolAnswer) {
  const asked: unknown[] = [];
  const operations = {
    step: (_: number, work: () => Promise<unknown>) => work(),
    tool: async (name: string, args: unknown) => {
      asked.push([name, args]);
      return answer;
    },
    fail: (reason: string) => {
      throw new Error(reason);
    },
  };
  const [counter] = agents;
  const text = await counter?.run(operations as unknown as AgentOperations, { goal, data: {} });
  return { text, asked };
}

describe('the day counter', () => {
  it('adds up the figures of the day in its task (AG-1)', async () => {
    const figures = { ok: true, result: { orders_usd: [10, 30, 20] } } as const;
    const { text, asked } = await count('The night of 2 March 2026, please.', figures);
    expect(asked).toEqual([['read_figures', { day: '2026-03-02' }]]);
    expect(text).toContain('3 orders of 60 USD in all; the largest was 30 USD');
  });

  it('fails without a day or without figures (AG-1)', async () => {
    const none = { ok: false, error: 'tool_error:read_figures', message: 'None.' } as const;
    await expect(count('Count.', none)).rejects.toThrow('no_day');
    await expect(count('2 March 2026', none)).rejects.toThrow('no_figures');
  });
});
