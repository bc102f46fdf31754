import { describe, expect, it, onTestFinished } from 'vitest';
import type { ChatTurn } from '../src/domain/calls/model-call.ts';
import { loadHistory, saveHistory } from '../src/store/history.ts';
import { openWorkerStore } from '../src/store/worker-store.ts';
import { TENANT } from './delivery.ts';

const AT = new Date('2026-01-01T00:00:00Z');

function turns(run: string, count: number) {
  return Array.from({ length: count }, (_, n) => ({ role: 'user', text: `${run} ${n}` }) as const);
}

describe('the history of an agent in a session', () => {
  it('contains the turns of all runs of the agent in order, whether a run has none or many (AG-8)', async () => {
    const store = await openWorkerStore({ dialect: 'sqlite', file: ':memory:' });
    onTestFinished(() => store.close());
    const agent = { tenant: TENANT, session_id: 'session-1', name: 'writer' };
    for (const [index, count] of [3, 0, 70].entries()) {
      const run = `run-${index}`;
      const at = new Date(AT.getTime() + index);
      await store.transaction(async (trx) => {
        saveHistory(trx, { ...agent, run_id: run }, turns(run, count), at);
      });
    }
    expect(await loadHistory(store.db, agent)).toEqual([
      ...turns('run-0', 3),
      ...turns('run-2', 70),
    ]);
    expect(await loadHistory(store.db, { ...agent, name: 'other' })).toEqual([]);
  });

  it('never starts with tool results, even when only its latest turns are loaded (AG-8)', async () => {
    const store = await openWorkerStore({ dialect: 'sqlite', file: ':memory:' });
    onTestFinished(() => store.close());
    const agent = { tenant: TENANT, session_id: 'session-1', name: 'writer' };
    const use = { id: 'use-1', tool: 'search', argumentsJson: '{}' };
    const results = [{ id: 'use-1', text: 'Found.', isError: false }];
    const exchange: ChatTurn[] = [
      { role: 'assistant', text: '', toolUses: [use] },
      { role: 'tool', results },
    ];
    const run = [...turns('run-0', 1), ...Array.from({ length: 500 }, () => exchange).flat()];
    const last = { role: 'assistant', text: 'Done.' } as const;
    await store.transaction(async (trx) => {
      saveHistory(trx, { ...agent, run_id: 'run-0' }, [...run, last], AT);
    });
    // The latest 1,000 turns begin with the results of the first exchange.
    const loaded = await loadHistory(store.db, agent);
    expect(loaded).toEqual([...run.slice(3), last]);
    expect(loaded).toHaveLength(999);
  });
});
