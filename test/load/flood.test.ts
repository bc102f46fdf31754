import { it } from 'vitest';
import { flood } from './flood.ts';

// The proof checks itself; `npm run load -- flood` makes 10,000 calls and prints how long the others took.
it('lets the calls of one source go on while another is flooded, whose calls are executed or overloaded (TG-6, TG-8)', async () => {
  await flood({ calls: 60, idleMs: 50, places: { max_in_flight: 4, max_queued: 8 } });
});
