import { describe, expect, it } from 'vitest';
import { mismatch } from './mismatch.ts';

describe('what a table expects of an answer', () => {
  it('is met by an answer that says more, and not by a longer list (TG-7)', () => {
    expect(mismatch({ a: { b: 1, c: 2 } }, { a: { b: 1 } })).toBeUndefined();
    expect(mismatch({ a: [1, 2] }, { a: [1] })).toBe('a is [1,2], not [1]');
    expect(mismatch({ a: [{ b: 2 }] }, { a: [{ b: 1 }] })).toBe('a[0].b is 2, not 1');
  });

  it('names what is missing or too much (TG-7)', () => {
    expect(mismatch({}, { a: { b: 1 } })).toBe('a is absent, not {"b":1}');
    expect(mismatch({ a: 1 }, { a: { absent: true } })).toBe('a is 1 and should be absent');
    expect(mismatch({}, { a: { absent: true } })).toBeUndefined();
    expect(mismatch({ a: 'x' }, { a: {} })).toBe('a is "x", not {}');
  });

  it('may leave the value open (TG-7)', () => {
    expect(mismatch({ a: 'no payee' }, { a: { matches: 'pay' } })).toBeUndefined();
    expect(mismatch({ a: 'no' }, { a: { matches: 'pay' } })).toContain('does not match pay');
    expect(mismatch({ a: 2 }, { a: { one_of: [1, 2] } })).toBeUndefined();
    expect(mismatch({ a: 3 }, { a: { one_of: [1, 2] } })).toBe('a is 3, none of [1,2]');
  });
});
