import { expect, it } from 'vitest';
import { frozenWorker } from './frozen-worker.ts';
import { races } from './races.ts';
import { teamKills } from './team-kills.ts';

// Each proof checks itself; `npm run load` runs them at full length.

it('ends every run of a team as an undisturbed one while the platform is killed under it, paying nothing and publishing nothing twice (AG-3, RT-1, TG-5, EM-7, SB-8)', async () => {
  const { kills } = await teamKills({
    runs: 20,
    batch: 10,
    seed: 1,
    killAfterMs: [500, 2_000],
    mostKills: 4,
  });
  expect(kills).toBeGreaterThan(0);
}, 300_000);

it('refuses every write of a worker that was frozen past its lease, whenever it was frozen (RT-2)', async () => {
  await frozenWorker({ rounds: 5, seed: 1 });
}, 120_000);

it('gives a run one end, whichever of its finish, a cancellation, a deadline, a halt and a preemption comes first (RT-4, AG-7, SUP-8)', async () => {
  await races({ runs: 60, seed: 1 });
}, 120_000);
