import { expect, it, vi } from 'vitest';
import { findRunnable } from '../src/store/leases.ts';
import { dueTimers, nextDue } from '../src/store/timers.ts';
import { World } from './world.ts';

/** Counts calls without changing what they return. */
vi.mock('../src/store/leases.ts', async (original) => {
  const actual = await original<typeof import('../src/store/leases.ts')>();
  return { ...actual, findRunnable: vi.fn(actual.findRunnable) };
});
vi.mock('../src/store/timers.ts', async (original) => {
  const actual = await original<typeof import('../src/store/timers.ts')>();
  return { ...actual, dueTimers: vi.fn(actual.dueTimers), nextDue: vi.fn(actual.nextDue) };
});

const UNKNOWN_TOOL = '{"kind":"tool","name":"no_such_tool","args":{}}';

it('polls the store once per delivered run and not after its end, and reads no due timers without one (RT-2)', async () => {
  const world = await World.start({ model: () => UNKNOWN_TOOL });
  await world.startWorker({ pollMs: 3_600_000 });
  const runs = ['run-1', 'run-2', 'run-3'];
  for (const runId of runs) {
    await world.deliver({ runId });
    await world.until('BLOCKED', runId);
  }
  await world.lastWorker.stop();
  expect(vi.mocked(findRunnable).mock.calls.length).toBeLessThanOrEqual(1 + 2 * runs.length);
  expect(vi.mocked(nextDue).mock.calls.length).toBeLessThanOrEqual(1 + 2 * runs.length);
  expect(dueTimers).not.toHaveBeenCalled();
});
