import { Priority } from '@writ/kernel';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FairQueue } from './fair-queue.ts';

const WEIGHTS = Object.values(Priority);

/**
 * Serves `rounds` calls while every flow keeps two calls waiting; returns the calls served per
 * flow.
 */
function served(weights: readonly Priority[], rounds: number): number[] {
  const queue = new FairQueue<number>();
  const add = (flow: number) =>
    queue.add({ flow: String(flow), weight: weights[flow] ?? Priority.NORMAL, item: flow });
  for (const flow of weights.keys()) {
    add(flow);
    add(flow);
  }
  const counts = weights.map(() => 0);
  for (let round = 0; round < rounds; round += 1) {
    const flow = queue.next();
    if (flow === undefined) break;
    counts[flow] = (counts[flow] ?? 0) + 1;
    add(flow);
  }
  return counts;
}

it('serves saturated flows in the ratio of their weights (SUP-3)', () => {
  expect(served([Priority.CRITICAL, Priority.NORMAL], 1000)).toEqual([800, 200]);
  expect(served([Priority.CRITICAL, Priority.HIGH, Priority.NORMAL, Priority.LOW], 1500)).toEqual([
    800, 400, 200, 100,
  ]);
});

it('serves BACKGROUND only when no other flow waits (SUP-3)', () => {
  expect(served([Priority.BACKGROUND, Priority.LOW], 100)).toEqual([0, 100]);
  const queue = new FairQueue<string>();
  queue.add({ flow: 'b', weight: Priority.BACKGROUND, item: 'background' });
  queue.add({ flow: 'l', weight: Priority.LOW, item: 'low' });
  expect([queue.next(), queue.next(), queue.next()]).toEqual(['low', 'background', undefined]);
});

it('accumulates no credit for an idle flow (SUP-3)', () => {
  const queue = new FairQueue<string>();
  for (let index = 0; index < 50; index += 1) {
    queue.add({ flow: 'busy', weight: Priority.NORMAL, item: 'busy' });
  }
  for (let index = 0; index < 20; index += 1) queue.next();
  for (let index = 0; index < 10; index += 1) {
    queue.add({ flow: 'late', weight: Priority.NORMAL, item: 'late' });
  }
  const order = Array.from({ length: 10 }, () => queue.next());
  expect(order.filter((item) => item === 'late').length).toBe(5);
});

it('serves every item exactly once while other items are removed', () => {
  const arrival = fc.record({
    flow: fc.constantFrom('a', 'b', 'c'),
    weight: fc.constantFrom(...WEIGHTS),
    does: fc.constantFrom('wait', 'serve', 'leave'),
  });
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 60 }), (arrivals) => {
      const queue = new FairQueue<number>();
      const waiting = new Set<number>();
      for (const [item, { flow, weight, does }] of arrivals.entries()) {
        queue.add({ flow, weight, item });
        waiting.add(item);
        if (does === 'leave') {
          expect(queue.remove(item)).toBe(true);
          waiting.delete(item);
        }
        if (does === 'serve') expect(waiting.delete(queue.next() ?? -1)).toBe(true);
        expect(queue.size).toBe(waiting.size);
      }
      while (queue.size > 0) expect(waiting.delete(queue.next() ?? -1)).toBe(true);
      expect(waiting.size).toBe(0);
      expect(queue.next()).toBeUndefined();
    }),
  );
});
