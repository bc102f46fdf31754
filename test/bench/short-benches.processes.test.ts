import { expect, it } from 'vitest';
import { measureActiveAgents } from './active-agents.ts';
import { measureTwoStep } from './two-step.ts';

it('measures every step of agents that are active at once, without failures (CO-1)', async () => {
  const figures = await measureActiveAgents({ agents: 3, steps: 2, modelMs: 50 });
  expect(figures).toMatchObject({ agents: 3, steps: 6, failures: [] });
  // A step cannot be much shorter than the delay of the model.
  expect(figures.overheadP50Ms).toBeGreaterThan(-5);
  expect(figures.cores).toBeGreaterThan(0);
  expect(figures.residentMb).toBeGreaterThan(10);
});

it('measures runs and direct calls in each round with their processor time (CO-1)', async () => {
  const rounds = await measureTwoStep({ rounds: 1, seconds: 0.3, warmUpMs: 300 });
  expect(rounds).toHaveLength(1);
  for (const { direct, writ } of rounds.flatMap(({ alone, crowded }) => [alone, crowded])) {
    for (const speed of [direct, writ]) {
      expect(speed.operations).toBeGreaterThan(0);
      expect(speed.cpuMs).toBeGreaterThan(0);
    }
    // Compares processor times, because elapsed times of single operations are meaningless on a busy machine.
    expect(writ.cpuMs / writ.operations).toBeGreaterThan(direct.cpuMs / direct.operations);
  }
});
