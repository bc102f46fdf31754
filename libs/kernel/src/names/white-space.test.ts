import { describe, expect, it } from 'vitest';
import { foldWhiteSpace, trimWhiteSpace } from './white-space.ts';

describe('white space', () => {
  it('is the Unicode property: includes U+0085, excludes U+FEFF and U+001C (TG-4)', () => {
    expect(foldWhiteSpace('\u0085 a \u2028\u3000 b\u00a0')).toBe('a b');
    expect(foldWhiteSpace('\ufeffa\u001cb')).toBe('\ufeffa\u001cb');
    expect(trimWhiteSpace('\u0085 a  b \u3000')).toBe('a  b');
    expect(trimWhiteSpace('\ufeff')).toBe('\ufeff');
  });

  it('trims a string of white space to an empty string', () => {
    expect(foldWhiteSpace(' ')).toBe('');
    expect(foldWhiteSpace('')).toBe('');
    expect(trimWhiteSpace(' \t\n ')).toBe('');
  });

  it('takes linear time for long runs of white space inside the text', () => {
    const measure = (length: number): number => {
      const text = `a${' '.repeat(length)}b`;
      const times = Array.from({ length: 5 }, () => {
        const started = performance.now();
        expect(trimWhiteSpace(text)).toBe(text);
        expect(foldWhiteSpace(text)).toBe('a b');
        return performance.now() - started;
      });
      return Math.min(...times);
    };
    measure(20_000);
    // Ten times the length takes about ten times as long; quadratic time would be a factor of a hundred.
    expect(measure(200_000) / measure(20_000)).toBeLessThan(50);
  });
});
