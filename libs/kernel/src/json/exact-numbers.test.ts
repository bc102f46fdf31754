import { describe, expect, it } from 'vitest';
import { hasExactNumbers } from './exact-numbers.ts';

describe('the numbers of a JSON text', () => {
  it.each([
    '850.50',
    '-0.10e2',
    '9007199254740992',
    '{"a": [1, 0.75], "b": "9007199254740993"}',
    '""',
  ])('are exact: %s (SV-5)', (json) => expect(hasExactNumbers(json)).toBe(true));

  it.each(['9007199254740993', '1e400', '1e-400', '[1, {"a": 0.12345678901234567891}]'])(
    'are not exact: %s (SV-5)',
    (json) => expect(hasExactNumbers(json)).toBe(false),
  );
});
