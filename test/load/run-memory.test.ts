import { expect, it } from 'vitest';
import { runMemory } from './run-memory.ts';

// The whole form: `npm run load -- run-memory`.
it('keeps no memory of runs that have ended (CO-2)', async () => {
  const { grownMb } = await runMemory({ before: 100, runs: 500 });
  expect(grownMb).toBeLessThan(5);
});
