import { describe, expect, it } from 'vitest';
import { isJsonObject } from './json-value.ts';

describe('isJsonObject', () => {
  it('knows objects from the rest', () => {
    expect(isJsonObject({})).toBe(true);
    for (const other of [null, [], 'x', 1, true, undefined]) {
      expect(isJsonObject(other)).toBe(false);
    }
  });
});
