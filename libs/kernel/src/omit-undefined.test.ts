import { expect, it } from 'vitest';
import { omitUndefined } from './omit-undefined.ts';

it('omits fields that are undefined and keeps every other value', () => {
  const fields = { a: undefined, b: null, c: 0, d: '', e: false };
  expect(Object.entries(omitUndefined(fields))).toEqual([
    ['b', null],
    ['c', 0],
    ['d', ''],
    ['e', false],
  ]);
});
