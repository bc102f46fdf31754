import { describe, expect, it } from 'vitest';
import { mismatch } from './mismatch.ts';

describe('expectations of a table', () => {
  it('accept additional fields and reject additional list items (TG-7)', () => {
    expect(mismatch({ a: { b: 1, c: 2 } }, { a: { b: 1 } })).toBeUndefined();
    expect(mismatch({ a: [1, 2] }, { a: [1] })).toBe('a is [1,2], not [1]');
    expect(mismatch({ a: [{ b: 2 }] }, { a: [{ b: 1 }] })).toBe('a[0].b is 2, not 1');
  });

  it('name missing and unexpected fields (TG-7)', () => {
    expect(mismatch({}, { a: { b: 1 } })).toBe('a is absent, not {"b":1}');
    expect(mismatch({ a: 1 }, { a: { absent: true } })).toBe('a is 1 and should be absent');
    expect(mismatch({}, { a: { absent: true } })).toBeUndefined();
    expect(mismatch({ a: 'x' }, { a: {} })).toBe('a is "x", not {}');
  });

  it('may be patterns or alternatives (TG-7)', () => {
    expect(mismatch({ a: 'no payee' }, { a: { matches: 'pay' } })).toBeUndefined();
    expect(mismatch({ a: 'no' }, { a: { matches: 'pay' } })).toContain('does not match pay');
    expect(mismatch({ a: 2 }, { a: { one_of: [1, 2] } })).toBeUndefined();
    expect(mismatch({ a: 3 }, { a: { one_of: [1, 2] } })).toBe('a is 3, none of [1,2]');
  });
});
