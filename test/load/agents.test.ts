import { expect, it } from 'vitest';
import { frozenWorker } from './frozen-worker.ts';
import { races } from './races.ts';
import { teamKills } from './team-kills.ts';

// `npm run load` runs each of these tests at full length.

it('completes every run of a team like an undisturbed run while the platform is killed, without paying or publishing twice (AG-3, RT-1, TG-5, EM-7, SB-8)', async () => {
  const figures = await teamKills({
    runs: 20,
    batch: 10,
    seed: 1,
    killAfterMs: [500, 2_000],
    maxKills: 4,
  });
  expect(figures.kills).toBeGreaterThan(0);
  expect(figures).toMatchObject({
    'runs with the answer of an undisturbed run': 20,
    'briefs published': 21,
    'model answers requested again': 0,
    'leaked rows': 0,
  });
}, 300_000);

it('refuses every write of a worker that was frozen past its lease, at any point of the run (RT-2)', async () => {
  const figures = await frozenWorker({ rounds: 5, seed: 1 });
  expect(figures).toMatchObject({
    'runs taken over': 5,
    'runs changed after the thaw': 0,
    'refunds issued': 5,
    'model answers requested again': 0,
  });
  expect(figures['writes attempted after the thaw']).toBeGreaterThan(0);
  expect(figures['writes refused after the thaw']).toBe(figures['writes attempted after the thaw']);
}, 120_000);

it('gives a run exactly one end when its finish races with a cancellation, a deadline, a halt and a preemption (RT-4, AG-7, SUP-8)', async () => {
  const figures = await races({ runs: 60, seed: 1 });
  expect(figures).toMatchObject({ runs: 60, 'RUN_END events': 60, 'leaked rows': 0 });
}, 120_000);
