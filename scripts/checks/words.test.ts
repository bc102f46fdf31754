import { describe, expect, it } from 'vitest';
import { findWords, readAllowed } from './words.ts';

const found = (text: string, file = 'libs/bus/src/a.ts') =>
  findWords(file, text).map(({ line, found: word }) => `${line} ${word}`);

describe('the word check', () => {
  it('finds banned words in prose, whatever their case', () => {
    expect(found('// Fine.\n// Nobody knows.')).toEqual(['2 nobody']);
    expect(found('embodynobodyness')).toEqual([]);
  });

  it('finds banned phrases across the lines of a comment', () => {
    expect(found('/**\n * A call under\n * way.\n */')).toEqual(['2 under way']);
    expect(found('# A call\n# is under\n# way.')).toEqual(['2 under way']);
  });

  it('finds banned phrases in identifiers and in file names', () => {
    expect(found('const callsUnderWay = CALLS_UNDER_WAY;')).toEqual(['1 under way', '1 under way']);
    expect(found('', 'libs/bus/src/calls-under-way.ts')).toEqual(['0 under way']);
  });

  it('accepts the names of examples and "stands for"', () => {
    expect(found("examples/refund-desk examples/news-feed - stands for 'none'")).toEqual([]);
  });
});

describe('the allow-list of the word check', () => {
  it('reads a path prefix and a pattern a line', () => {
    const [entry] = readAllowed('# comment\n\ndocs/adr | nobody | quoted\n');
    expect(entry?.prefix).toBe('docs/adr');
    expect(entry?.pattern.test('nobody')).toBe(true);
  });

  it('rejects a line without a reason', () => {
    expect(() => readAllowed('docs/adr | nobody |')).toThrow('reason');
  });
});
