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

  it('takes linear time on long inner runs', () => {
    const long = `a${' '.repeat(250_000)}b`;
    const started = performance.now();
    expect(trimWhiteSpace(long)).toBe(long);
    expect(foldWhiteSpace(long)).toBe('a b');
    expect(performance.now() - started).toBeLessThan(1000);
  });
});
