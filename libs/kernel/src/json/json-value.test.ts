import { describe, expect, it } from 'vitest';
import { isJsonObject } from './json-value.ts';

describe('isJsonObject', () => {
  it('distinguishes objects from other values', () => {
    expect(isJsonObject({})).toBe(true);
    for (const other of [null, [], 'x', 1, true, undefined]) {
      expect(isJsonObject(other)).toBe(false);
    }
  });
});
