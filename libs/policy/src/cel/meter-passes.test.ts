import { parse } from '@marcbachmann/cel-js';
import { describe, expect, it } from 'vitest';
import { meterPasses } from './meter-passes.ts';
import { withPassLimit } from './pass-limit.ts';

/** Evaluates an expression over 100,000 items until the pass limit ends it; returns how often `inner` was read. */
function reads(expression: string): number {
  let count = 0;
  const item = {
    get inner() {
      count += 1;
      return {};
    },
  };
  const program = parse(expression);
  meterPasses(program.ast);
  const evaluate = () => withPassLimit(() => program({ items: Array(100_000).fill(item) }));
  expect(evaluate).toThrow('the expression takes more than 1000000 passes');
  return count;
}

describe('the limit of passes', () => {
  it.each([
    'items.exists(a, a.inner.x == 1) || true',
    'items.map(a, a.inner.x == 1 || a.inner.y == 1 || true).size() > 0',
  ])('ends the evaluation of operands whose errors are ignored: %s (BD-1)', (expression) => {
    const count = reads(expression);
    expect(count).toBeGreaterThan(1_000);
    expect(count).toBeLessThan(50_000);
  });
});
