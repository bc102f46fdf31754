import { expect, it } from 'vitest';
import { spawnCap } from './spawn-cap.ts';

// `npm run load -- spawn-cap` makes 1,000 acquires.
it('grants at most as many slots as max_agents to four concurrent client processes, and each pause has one beneficiary (SB-2, SB-6)', async () => {
  const figures = await spawnCap({ acquires: 120 });
  expect(figures['granted with equal priority']).toBe(19);
  expect(figures['most slots held at a time']).toBeLessThanOrEqual(20);
  expect(figures['paused for a higher priority']).toBeGreaterThan(0);
  expect(figures.beneficiaries).toBe(figures['paused for a higher priority']);
});
