import { sha256Hex } from '@writ/kernel';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { capOutput } from './cap-output.ts';
import { fieldsFit, pickFields } from './receipt-fields.ts';

describe('capOutput (TG-6)', () => {
  it('returns a result within the limit unchanged', () => {
    const content = '{"status":"ok"}';
    expect(capOutput({ kind: 'json', content, value: { status: 'ok' } }, 15)).toEqual({
      kind: 'json',
      content,
      mediaType: '',
      truncated: false,
      fullSizeBytes: 15,
      fullSha256: sha256Hex(content),
    });
  });

  it('cuts a longer result to text and keeps the size and digest of the full content', () => {
    const content = '{"status":"ok"}';
    expect(capOutput({ kind: 'json', content, value: {} }, 8)).toEqual({
      kind: 'text',
      content: '{"status',
      mediaType: '',
      truncated: true,
      fullSizeBytes: 15,
      fullSha256: sha256Hex(content),
    });
  });

  it('replaces NUL characters before it measures and cuts the content (TG-5)', () => {
    expect(capOutput({ kind: 'text', content: 'a\u0000bc' }, 4)).toMatchObject({
      content: 'a\ufffd',
      truncated: true,
      fullSizeBytes: 6,
      fullSha256: sha256Hex('a\ufffdbc'),
    });
  });

  it('cuts between characters at any limit', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(40), (content, maxBytes) => {
        const result = capOutput({ kind: 'text', content }, maxBytes);
        expect(Buffer.byteLength(result.content)).toBeLessThanOrEqual(maxBytes);
        expect(content.startsWith(result.content)).toBe(true);
        expect(Buffer.byteLength(result.content)).toBeGreaterThan(
          Math.min(maxBytes, result.fullSizeBytes) - 4,
        );
      }),
      { numRuns: 300 },
    );
  });
});

describe('pickFields (TG-8)', () => {
  it('returns existing values by dotted path', () => {
    const result = { status: 'ok', refund: { amount_usd: 12.5, note: null } };
    expect(
      pickFields(result, ['refund.amount_usd', 'status', 'error', 'refund.note', 'status.x']),
    ).toEqual({ 'refund.amount_usd': 12.5, status: 'ok', 'refund.note': null });
  });

  it('ignores inherited properties', () => {
    expect(pickFields({}, ['constructor', '__proto__', 'toString.name'])).toEqual({});
  });

  it('keeps a large field without its content, so that a policy never treats it as missing (SYS-4)', () => {
    const long = 'é'.repeat(1_000);
    const fields = pickFields({ error: long, list: [1], map: { a: 1 } }, ['error', 'list', 'map']);
    expect(fields).toEqual({ error: 'é'.repeat(128), list: [], map: {} });
  });

  it('stays within the size limit of a receipt', () => {
    const paths = Array.from({ length: 64 }, (_, index) => `field_${index}`);
    const result = Object.fromEntries(paths.map((path) => [path, '\u0001'.repeat(256)]));
    const fields = pickFields(result, paths);
    expect(Object.keys(fields)).toEqual(paths);
    expect(Buffer.byteLength(JSON.stringify(fields))).toBeLessThan(8_192);
  });

  it('checks before execution whether the requested paths fit', () => {
    expect(fieldsFit(['refund.amount_usd'])).toBe(true);
    expect(fieldsFit(Array(65).fill('a'))).toBe(false);
    expect(fieldsFit(['a'.repeat(4_000)])).toBe(false);
  });
});
