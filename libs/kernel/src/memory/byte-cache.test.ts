import { describe, expect, it } from 'vitest';
import { ByteCache, cacheSizes } from './byte-cache.ts';

const valuesOf = (cache: ByteCache<string>) => [...cache.values()];

describe('a cache that is limited by bytes', () => {
  it('keeps the most recently used values that fit into the byte limit (BD-1, CO-2)', () => {
    const cache = new ByteCache<string>({ name: 'test', maxBytes: 4_000 });
    for (const name of ['a', 'b', 'c']) cache.set(name, name.repeat(1_000));
    cache.get('a');
    cache.set('d', 'd'.repeat(1_000));
    expect(valuesOf(cache).map(([first]) => first)).toEqual(['c', 'a', 'd']);
    cache.set('e', 'e'.repeat(3_000));
    expect(valuesOf(cache).map(([first]) => first)).toEqual(['e']);
    expect(cache.bytes).toBeLessThanOrEqual(4_000);
  });

  it('evicts the oldest value regardless of reads when evicts is set to oldest (CO-2)', () => {
    const cache = new ByteCache<string>({ name: 'test', maxBytes: 4_000, evicts: 'oldest' });
    for (const name of ['a', 'b', 'c']) cache.set(name, name.repeat(1_000));
    expect(cache.get('a')).toBe('a'.repeat(1_000));
    cache.set('d', 'd'.repeat(1_000));
    expect(valuesOf(cache).map(([first]) => first)).toEqual(['b', 'c', 'd']);
  });

  it('does not cache a value above maxEntryBytes, and drops the previous value of its key (CO-2)', () => {
    const cache = new ByteCache<string>({ name: 'test', maxBytes: 4_000, maxEntryBytes: 1_500 });
    cache.set('a', 'A'.repeat(1_000));
    cache.set('b', 'B');
    cache.set('a', 'A'.repeat(2_000));
    expect(valuesOf(cache)).toEqual(['B']);
  });

  it('counts a value that is set repeatedly only once, and counts the length of keys (CO-2)', () => {
    const cache = new ByteCache<string>({ name: 'test', maxBytes: 10_000 });
    for (let times = 0; times < 100; times += 1) cache.set('a', 'A'.repeat(1_000));
    expect(cache.bytes).toBeLessThan(1_500);
    cache.set('k'.repeat(6_000), 'K');
    expect(valuesOf(cache)).toHaveLength(1);
    cache.clear();
    expect([cache.size, cache.bytes]).toEqual([0, 0]);
  });

  it('deletes the entries of a run, limits the number of entries, and keeps none with a limit of zero (CO-2)', () => {
    const cache = new ByteCache<string>({ name: 'test', maxBytes: 10_000, maxEntries: 3 });
    for (const key of ['acme/run-0/a', 'acme/run-1/a', 'acme/run-1/b', 'acme/run-2/a'])
      cache.set(key, key);
    cache.deletePrefix('acme/run-1/');
    expect(valuesOf(cache)).toEqual(['acme/run-2/a']);
    const none = new ByteCache<string>({ name: 'test', maxBytes: 0 });
    none.set('a', 'A');
    expect(none.get('a')).toBeUndefined();
  });

  it('is counted under its name in the cache sizes of the process', () => {
    const one = new ByteCache<string>({ name: 'named', maxBytes: 10_000 });
    const two = new ByteCache<string>({ name: 'named', maxBytes: 10_000 });
    one.set('a', 'A');
    two.set('a', 'A');
    expect(cacheSizes().find(({ name }) => name === 'named')).toEqual({
      name: 'named',
      entries: 2,
      bytes: one.bytes + two.bytes,
    });
  });
});
