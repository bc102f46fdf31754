import { expect, it } from 'vitest';
import { runMemory } from './run-memory.ts';

// The whole form: `npm run load -- run-memory`.
// Some 500 runs fill the caches of verified tokens.
it('keeps no memory of runs that have ended (CO-2)', async () => {
  const { grownMb } = await runMemory({ before: 600, runs: 1_000 });
  expect(grownMb).toBeLessThan(5);
}, 900_000);
