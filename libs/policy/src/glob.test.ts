import { describe, expect, it } from 'vitest';
import { isExact, matchesGlob } from './glob.ts';

describe('a tool pattern', () => {
  it.each([
    ['issue_refund', 'issue_refund', true],
    ['issue_refund', 'issue_refunds', false],
    ['issue_refund', 'Issue_refund', false],
    ['issue_*', 'issue_refund', true],
    ['issue_*', 'issue_', true],
    ['*_refund', 'issue_refund', true],
    ['*a*b', 'xaybzb', true],
    ['*a*b', 'xaybz', false],
    ['*', '', true],
    ['', '', true],
    ['', 'a', false],
    ['a.b', 'axb', false],
    ['mcp:*:read', 'mcp:files:read', true],
  ])('%s matches %s: %s (SV-3)', (pattern, text, fits) => {
    expect(matchesGlob(pattern, text)).toBe(fits);
  });

  it('rejects a long name with many partial matches without exponential backtracking (SV-3)', () => {
    const pattern = `${'*a'.repeat(60)}b`;
    expect(matchesGlob(pattern, 'a'.repeat(20_000))).toBe(false);
  });

  it('is exact without a star', () => {
    expect([isExact('a_b'), isExact('a*')]).toEqual([true, false]);
  });
});
