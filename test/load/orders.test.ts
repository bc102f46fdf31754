import { it } from 'vitest';
import { orderKills } from './orders.ts';

// The proof checks itself; `npm run load -- order-kills` kills it at random moments besides.
it('carries every order to its end when the platform is killed at each of its steps: one child, and nothing of it left behind (SUP-8, SUP-9)', async () => {
  await orderKills({});
}, 180_000);
