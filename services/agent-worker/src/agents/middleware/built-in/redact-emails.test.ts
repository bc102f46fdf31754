import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { redactEmails } from './redact-emails.ts';

/** Pattern of the addresses to redact. Its matching time is quadratic in the length of a word without `@`. */
const ADDRESS = /[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+/gu;
const LETTERS = ['a', '7', '.', '_', '@', '-', 'é', ' ', '𝐀', '\ud835', '\udc00'];

describe('redactEmails', () => {
  it('replaces the same addresses as the pattern in any text (AG-9)', () => {
    const texts = fc.string({ unit: fc.constantFrom(...LETTERS), maxLength: 40 });
    const redacts = fc.property(texts, (text) => {
      expect(redactEmails(text, '[x]')).toBe(text.replace(ADDRESS, '[x]'));
    });
    fc.assert(redacts, { numRuns: 5_000 });
  });

  it.each(['a@b.c@d.e@f.g', 'a@b.com_x@d.org', 'a@b@c.d', '@a.b', 'a@b.c.'])(
    'replaces the same addresses as the pattern in %s (AG-9)',
    (text) => {
      expect(redactEmails(text, '[x]')).toBe(text.replace(ADDRESS, '[x]'));
    },
  );
});
