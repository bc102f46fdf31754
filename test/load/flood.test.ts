import { expect, it } from 'vitest';
import { flood } from './flood.ts';

// `npm run load -- flood` makes 10,000 calls and prints latencies.
it('serves one source during a flood of another, whose calls are executed or rejected (TG-6, TG-8)', async () => {
  const figures = await flood({
    calls: 60,
    idleMs: 50,
    limits: { max_in_flight: 4, max_queued: 8 },
  });
  expect(figures['other outcomes']).toBe('{}');
  expect(figures.executed + figures.overloaded).toBe(60);
  expect(figures.executed).toBeGreaterThan(0);
  expect(figures['calls of the other source during the flood']).toBeGreaterThan(0);
  expect(figures['failed calls of the other source']).toBe(0);
});
