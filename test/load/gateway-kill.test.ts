import { expect, it } from 'vitest';
import { gatewayKill } from './gateway-kill.ts';

// `npm run load -- gateway-kill` kills the gateway 300 times.
it('executes no destructive tool twice when the gateway is killed between intent and outcome, and ends every call (TG-5)', async () => {
  const figures = await gatewayKill({ kills: 2, seed: 3 });
  expect(figures).toMatchObject({
    'kills between intent and outcome': 2,
    'destructive calls executed twice': 0,
    'calls without an outcome': 0,
  });
  expect(figures['destructive calls']).toBeGreaterThan(0);
});
