import { describe, expect, it } from 'vitest';
import { TokenCache } from './token-cache.ts';

/** A cache size that fits two entries with short tokens, but not three, in bytes. */
const TWO = 500;

describe('token cache', () => {
  it('drops a token when it expires', () => {
    const cache = new TokenCache<string>(TWO);
    cache.set('a', 'A', 10);
    expect(cache.get('a', 9)).toBe('A');
    expect(cache.get('a', 10)).toBeUndefined();
    expect(cache.get('a', 9)).toBeUndefined();
  });

  it('evicts the least recently used token first', () => {
    const cache = new TokenCache<string>(TWO);
    cache.set('a', 'A', 10);
    cache.set('b', 'B', 10);
    cache.get('a', 0);
    cache.set('c', 'C', 10);
    expect([cache.get('a', 0), cache.get('b', 0), cache.get('c', 0)]).toEqual([
      'A',
      undefined,
      'C',
    ]);
  });

  it('keeps as many tokens as fit into its byte limit, and does not cache a larger token (CO-2)', () => {
    const cache = new TokenCache<string>(100_000);
    const long = (number: number) => `${number}`.padEnd(10_000, '.');
    for (let number = 0; number < 10; number += 1) cache.set(long(number), 'A', 10);
    const kept = Array.from({ length: 10 }, (_, number) => cache.get(long(number), 0));
    expect(kept.filter((value) => value === 'A')).toHaveLength(3);
    expect(kept.slice(7)).toEqual(['A', 'A', 'A']);
    cache.set('x'.repeat(100_000), 'B', 10);
    expect(cache.get('x'.repeat(100_000), 0)).toBeUndefined();
    expect(cache.get(long(9), 0)).toBe('A');
  });

  it('caches nothing with a limit of zero', () => {
    const cache = new TokenCache<string>(0);
    cache.set('a', 'A', 10);
    expect(cache.get('a', 0)).toBeUndefined();
  });
});
