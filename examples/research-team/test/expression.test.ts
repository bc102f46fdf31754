import { describe, expect, it } from 'vitest';
import { evaluate } from '../src/expression.ts';

describe('expressions of the calculator', () => {
  it.each([
    ['1 + 2 * 3', 7],
    ['(1 + 2) * 3', 9],
    ['10 - 4 - 3', 3],
    ['2 ^ 3 ^ 2', 512],
    ['-2 ^ 2', -4],
    ['2 ^ -1', 0.5],
    ['7 % 4 * 2', 6],
    ['--3', 3],
    ['.5 + 1.', 1.5],
    ['1e3 / 4', 250],
    ['0.1 + 0.2', 0.3],
    ['-0', 0],
    ['MAX(1, 2, 3) + min(4, 5)', 7],
    ['round(1200 * 1.035 ^ 7)', 1527],
    ['sqrt(6.25)', 2.5],
    ['3 * PI', 3 * Math.PI],
    ['ln(e)', 1],
    ['9007199254740991', 9007199254740991],
  ])('evaluates %s to %d', (text, value) => {
    expect(evaluate(text)).toBe(value);
  });

  it.each([
    ['', 'ends too early'],
    ['1 +', 'ends too early'],
    ['(1', 'ends too early'],
    ['1 2', 'has an unexpected 2'],
    ['1)', 'has an unexpected )'],
    ['max()', 'has an unexpected )'],
    ['abs(1, 2)', 'takes one argument, not 2'],
    ['constructor', 'has an unexpected constructor'],
    ['process.exit()', 'cannot be read from character 8'],
    ['1; 2', 'cannot be read from character 2'],
    ['"a"', 'cannot be read from character 1'],
    ['1 / 0', 'no finite value'],
    ['sqrt(-1)', 'no finite value'],
    ['9 ^ 999', 'no finite value'],
    ['2 ^ 53', '2^53 or more'],
    ['('.repeat(100), 'nested deeper than 64'],
    ['-'.repeat(100), 'nested deeper than 64'],
    ['1+'.repeat(600), 'longer than 1000 characters'],
  ])('rejects %s with the reason', (text, message) => {
    expect(() => evaluate(text)).toThrow(message);
  });
});
