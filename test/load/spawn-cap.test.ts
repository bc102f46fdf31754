import { it } from 'vitest';
import { spawnCap } from './spawn-cap.ts';

// The proof checks itself; `npm run load -- spawn-cap` makes 1,000 acquires.
it('grants no more slots than there are to four processes that ask at once, and each pause has one beneficiary (SB-2, SB-6)', async () => {
  await spawnCap({ acquires: 120 });
});
