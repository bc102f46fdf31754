import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJsonStrict } from './json.ts';

const reasonOf = (source: string | Uint8Array, limits = {}): string | undefined => {
  try {
    parseJsonStrict(source, limits);
    return undefined;
  } catch (error) {
    return (error as { reason: string }).reason;
  }
};

describe('parseJsonStrict', () => {
  it('parses like JSON.parse', () => {
    const text =
      ' {"a" : [1, -2.5e-3, true, false, null, "x\\n\\u00e9\\ud83d\\ude00/\\/"], "":{} } \n';
    expect(parseJsonStrict(text)).toEqual(JSON.parse(text));
    expect(parseJsonStrict(new TextEncoder().encode('"\u00e9"'))).toBe('\u00e9');
  });

  it.each([
    ['INVALID_JSON', ''],
    ['INVALID_JSON', '{'],
    ['INVALID_JSON', '{"a":1,}'],
    ['INVALID_JSON', '[1,]'],
    ['INVALID_JSON', '[1 2]'],
    ['INVALID_JSON', '{a:1}'],
    ['INVALID_JSON', "{'a':1}"],
    ['INVALID_JSON', '{"a" 1}'],
    ['INVALID_JSON', '01'],
    ['INVALID_JSON', '+1'],
    ['INVALID_JSON', '.5'],
    ['INVALID_JSON', '1.'],
    ['INVALID_JSON', '-'],
    ['INVALID_JSON', '1 2'],
    ['INVALID_JSON', 'tru'],
    ['INVALID_JSON', 'undefined'],
    ['INVALID_JSON', '"a'],
    ['INVALID_JSON', '"a\nb"'],
    ['INVALID_JSON', '"\\x41"'],
    ['INVALID_JSON', '"\\u12g4"'],
    ['INVALID_JSON', '"\\constructor"'],
    ['INVALID_JSON', '\ufeff{}'],
    ['INVALID_JSON', '\u00a0{}'],
    ['INVALID_JSON', '/* c */ {}'],
    ['INVALID_JSON', '```json\n{}\n```'],
    ['JSON_DUPLICATE_KEY', '{"a":1,"a":2}'],
    ['JSON_DUPLICATE_KEY', '{"a":1,"\\u0061":2}'],
    ['JSON_DUPLICATE_KEY', '{"x":[{"k":1,"k":1}]}'],
    ['JSON_FORBIDDEN_KEY', '{"__proto__":{}}'],
    ['JSON_FORBIDDEN_KEY', '{"\\u005f_proto__":{}}'],
    ['JSON_LONE_SURROGATE', '"\\ud800"'],
    ['JSON_LONE_SURROGATE', '{"\\udc00":1}'],
    ['JSON_LONE_SURROGATE', '"\ud800"'],
    ['JSON_INVALID_NUMBER', 'NaN'],
    ['JSON_INVALID_NUMBER', '[-Infinity]'],
    ['JSON_INVALID_NUMBER', '1e999'],
    ['JSON_INVALID_NUMBER', '9007199254740992'],
    ['JSON_INVALID_NUMBER', '-9007199254740993'],
    ['JSON_INVALID_NUMBER', '1e20'],
    ['JSON_INVALID_NUMBER', '9007199254740993.0'],
  ])('rejects with %s: %j (TG-4)', (reason, text) => {
    expect(reasonOf(text)).toBe(reason);
  });

  it('accepts the largest safe integer, and larger numbers whose canonical form has an exponent (TG-4)', () => {
    expect(parseJsonStrict('9007199254740991')).toBe(Number.MAX_SAFE_INTEGER);
    expect(parseJsonStrict('6.02e23')).toBe(6.02e23);
  });

  it('accepts keys that resemble forbidden keys', () => {
    const parsed = parseJsonStrict('{"constructor":1,"toString":2,"hasOwnProperty":3}');
    expect(Object.keys(parsed as object)).toEqual(['constructor', 'toString', 'hasOwnProperty']);
  });

  it('rejects invalid UTF-8 and a byte order mark', () => {
    expect(reasonOf(Uint8Array.of(0x22, 0xff, 0x22))).toBe('JSON_INVALID_UTF8');
    expect(reasonOf(Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22))).toBe('JSON_INVALID_UTF8');
    expect(reasonOf(Uint8Array.of(0xef, 0xbb, 0xbf, 0x7b, 0x7d))).toBe('INVALID_JSON');
  });

  it('limits depth and size, by default to 32 and 256 KiB', () => {
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
    expect(reasonOf(nested(32))).toBeUndefined();
    expect(reasonOf(nested(33))).toBe('JSON_TOO_DEEP');
    expect(reasonOf('['.repeat(200_000))).toBe('JSON_TOO_DEEP');
    expect(reasonOf(nested(3), { maxDepth: 2 })).toBe('JSON_TOO_DEEP');
    expect(reasonOf(`"${'a'.repeat(262_142)}"`)).toBeUndefined();
    expect(reasonOf(`"${'a'.repeat(262_143)}"`)).toBe('JSON_TOO_LARGE');
    expect(reasonOf('"\u20ac\u20ac"', { maxBytes: 7 })).toBe('JSON_TOO_LARGE');
  });

  it('names the field and the position, never the content (SYS-3)', () => {
    expect(() => parseJsonStrict('{"secret":1,"secret":2}', { field: 'args' })).toThrow(
      expect.objectContaining({
        message: 'args has the same key twice in one object (at character 12).',
        metadata: { field: 'args', offset: '12' },
      }),
    );
  });

  it('agrees with JSON.parse on every accepted text', () => {
    const mutated = fc
      .tuple(fc.json(), fc.nat(), fc.constantFrom('', '"', ',', '}', '\\', '0', ' ', 'e', '-'))
      .map(([text, at, insert]) => {
        const cut = at % (text.length + 1);
        return text.slice(0, cut) + insert + text.slice(cut);
      });
    fc.assert(
      fc.property(mutated, (text) => {
        if (reasonOf(text) !== undefined) return;
        expect(parseJsonStrict(text)).toEqual(JSON.parse(text));
      }),
      { numRuns: 500 },
    );
  });
});
