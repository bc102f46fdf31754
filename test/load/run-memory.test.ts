import { expect, it } from 'vitest';
import { runMemory } from './run-memory.ts';

// The full test: `npm run load -- run-memory`.
// About 500 runs fill the caches of verified tokens.
it('frees the memory of ended runs (CO-2)', async () => {
  const { grownMb } = await runMemory({ before: 600, runs: 1_000 });
  expect(grownMb).toBeLessThan(5);
}, 900_000);
