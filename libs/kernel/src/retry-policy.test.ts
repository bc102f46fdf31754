import { describe, expect, it } from 'vitest';
import { RetryPolicy } from './retry-policy.ts';

describe('RetryPolicy', () => {
  it('restarts three times by default, then gives up (SUP-7)', () => {
    const policy = new RetryPolicy();
    expect([1, 2, 3, 4, 5].map(() => policy.shouldRetry('a'))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
    expect(policy.counts()).toEqual({ a: 3 });
  });

  it('counts each agent by itself, and starts again after a success (SUP-7)', () => {
    const policy = new RetryPolicy(1);
    expect([policy.shouldRetry('a'), policy.shouldRetry('b')]).toEqual([true, true]);
    policy.reset('a');
    expect([policy.shouldRetry('a'), policy.shouldRetry('b')]).toEqual([true, false]);
  });

  it('never restarts at zero, and remembers stored counts (SUP-7)', () => {
    expect(new RetryPolicy(0).shouldRetry('a')).toBe(false);
    expect(new RetryPolicy(3, { a: 3 }).shouldRetry('a')).toBe(false);
  });
});
