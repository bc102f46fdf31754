import { describe, expect, it } from 'vitest';
import { TokenCache } from './token-cache.ts';

describe('token cache', () => {
  it('drops a token when it expires', () => {
    const cache = new TokenCache<string>(2);
    cache.set('a', 'A', 10);
    expect(cache.get('a', 9)).toBe('A');
    expect(cache.get('a', 10)).toBeUndefined();
    expect(cache.get('a', 9)).toBeUndefined();
  });

  it('evicts the least recently used token first', () => {
    const cache = new TokenCache<string>(2);
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

  it('caches nothing with a limit of zero', () => {
    const cache = new TokenCache<string>(0);
    cache.set('a', 'A', 10);
    expect(cache.get('a', 0)).toBeUndefined();
  });
});
