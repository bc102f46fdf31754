import { it } from 'vitest';
import { gatewayKill } from './gateway-kill.ts';

// The proof checks itself; `npm run load -- gateway-kill` kills the gateway 300 times.
it('runs no destructive tool twice when the gateway is killed between intent and outcome, and ends every call (TG-5)', async () => {
  await gatewayKill({ kills: 2, seed: 3 });
});
