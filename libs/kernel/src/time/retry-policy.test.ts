import { describe, expect, it } from 'vitest';
import { RetryPolicy } from './retry-policy.ts';

describe('RetryPolicy', () => {
  it('allows three restarts by default (SUP-7)', () => {
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

  it('counts per agent and resets after a success (SUP-7)', () => {
    const policy = new RetryPolicy(1);
    expect([policy.shouldRetry('a'), policy.shouldRetry('b')]).toEqual([true, true]);
    policy.reset('a');
    expect([policy.shouldRetry('a'), policy.shouldRetry('b')]).toEqual([true, false]);
  });

  it('never restarts with a limit of zero, and restores stored counts (SUP-7)', () => {
    expect(new RetryPolicy(0).shouldRetry('a')).toBe(false);
    expect(new RetryPolicy(3, { a: 3 }).shouldRetry('a')).toBe(false);
  });
});
