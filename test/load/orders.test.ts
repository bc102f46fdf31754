import { expect, it } from 'vitest';
import { orderKills } from './orders.ts';

// `npm run load -- order-kills` also kills the platform at random moments.
it('completes every order when the platform is killed at each step of the order, with one child and no leaked resource (SUP-8, SUP-9)', async () => {
  const figures = await orderKills({});
  const points = figures['kill points'];
  expect(points).toBeGreaterThan(0);
  expect(figures['runs completed']).toBe(points + 1);
  expect(figures['runs cancelled during setup']).toBeGreaterThan(0);
}, 180_000);
