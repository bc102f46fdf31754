import { cacheSizes } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { handoff, llmEnd, runEnd, watched } from '../test/hook-events.ts';
import { CostTracker } from './cost-tracker.ts';
import { toHookContext } from './hook-context.ts';

describe('CostTracker', () => {
  it('reports tokens and cost of a run when it ends, and removes it (HK-3)', async () => {
    const { manager } = watched();
    const totals: unknown[] = [];
    const tracker = new CostTracker((runId, total) => totals.push([runId, total]));
    manager.register(tracker.hooks);
    for (const id of ['e1', 'e2']) await manager.dispatch(toHookContext(llmEnd(id)));
    const spent = { input_tokens: 200, output_tokens: 40, cost_nano_usd: 6_000n, calls: 2 };
    expect(tracker.total('run-1')).toEqual(spent);
    await manager.dispatch(toHookContext(runEnd('writer')));
    expect(totals).toEqual([['run-1', spent]]);
    expect(tracker.total('run-1').calls).toBe(0);
  });
});

it('limits the memory for costs of runs that never end (HK-3, CO-2)', async () => {
  const { manager } = watched();
  const tracker = new CostTracker(() => expect.unreachable());
  manager.register(tracker.hooks);
  for (let run = 0; run < 50_000; run += 1) {
    await manager.dispatch({ ...toHookContext(llmEnd(`e${run}`)), run_id: `run-${run}` });
  }
  expect(tracker.total('run-0').calls).toBe(0);
  expect(tracker.total('run-49999').calls).toBe(1);
  const size = cacheSizes().find(({ name }) => name === 'run_costs');
  expect(size?.entries).toBeGreaterThan(10_000);
  expect(size?.bytes).toBeLessThan(17_000_000);
});

describe('the total of an agent', () => {
  const events = [
    llmEnd('e1', 'lead'),
    handoff('lead', 'child'),
    llmEnd('e2', 'child'),
    handoff('child', 'grandchild'),
    llmEnd('e3', 'grandchild'),
    runEnd('grandchild'),
    runEnd('child'),
    llmEnd('e4', 'lead'),
    runEnd('lead'),
  ];
  const totalsOf = async (options: { agent?: string }, order = events) => {
    const { manager } = watched(options);
    const totals: unknown[] = [];
    const tracker = new CostTracker((_, { calls, input_tokens }, { agent_id }) =>
      totals.push([agent_id, calls, input_tokens]),
    );
    manager.register(tracker.hooks);
    for (const event of order) await manager.dispatch(toHookContext(event));
    expect(tracker.total('run-1').calls).toBe(0);
    return totals;
  };

  it('includes its descendants; the total of the root covers the whole run (HK-3)', async () => {
    expect(await totalsOf({})).toEqual([
      ['grandchild-1', 1, 100],
      ['child-1', 2, 200],
      ['lead-1', 4, 400],
    ]);
  });

  it('is reported for each instance when the manager is limited to one agent (HK-3)', async () => {
    expect(await totalsOf({ agent: 'child' })).toEqual([['child-1', 1, 100]]);
    const twins = [
      llmEnd('e1', 'child'),
      llmEnd('e5', 'child', 'child-2'),
      runEnd('child'),
      runEnd('child', 'child-2'),
    ];
    expect(await totalsOf({ agent: 'child' }, twins)).toEqual([
      ['child-1', 1, 100],
      ['child-2', 1, 100],
    ]);
  });
});
