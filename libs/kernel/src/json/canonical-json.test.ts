import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from './canonical-json.ts';
import { canonicalDigest, definitionDigest, sha256Hex } from './digests.ts';
import { parseJsonStrict } from './json.ts';

describe('canonicalJson', () => {
  it('formats the example of RFC 8785 section 3.2.3 (TG-4)', () => {
    const value = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\u{1f600}': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    };
    expect(Object.values(JSON.parse(canonicalJson(value)))).toHaveLength(7);
    expect([...canonicalJson(value).matchAll(/:"(\w+)/g)].map((found) => found[1])).toEqual([
      'Carriage',
      'One',
      'Control',
      'Latin',
      'Euro',
      'Emoji',
      'Hebrew',
    ]);
  });

  it('formats numbers like ECMAScript (TG-4)', () => {
    expect(canonicalJson([Number('333333333.33333329'), 1e30, 4.5, 2e-3, 1e-27, -0, 1e21])).toBe(
      '[333333333.3333333,1e+30,4.5,0.002,1e-27,0,1e+21]',
    );
  });

  it('round-trips through the strict parser (TG-4)', () => {
    const value = fc.jsonValue({ maxDepth: 4 }).filter(isStrict);
    fc.assert(
      fc.property(value, (original) => {
        const text = canonicalJson(original);
        expect(parseJsonStrict(text)).toEqual(JSON.parse(JSON.stringify(original)));
        expect(canonicalJson(parseJsonStrict(text))).toBe(text);
      }),
    );
  });

  it('does not depend on the order of keys (TG-4)', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.integer()), (value) => {
        const reversed = Object.fromEntries(Object.entries(value).reverse());
        expect(canonicalJson(reversed)).toBe(canonicalJson(value));
      }),
    );
  });

  it('rejects values without a JSON form (SYS-4)', () => {
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    const sparse = new Array(1);
    for (const bad of [
      undefined,
      { a: undefined },
      Number.NaN,
      1n,
      '\ud800',
      { '\udc00': 1 },
      new Date(0),
      new Map(),
      () => 1,
      cyclic,
      sparse,
    ]) {
      expect(() => canonicalJson(bad)).toThrow(
        expect.objectContaining({ reason: 'NOT_SERIALIZABLE' }),
      );
    }
  });
});

describe('digests', () => {
  it('are SHA-256 of the canonical text in hex (TG-1)', () => {
    expect(sha256Hex('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    expect(canonicalDigest({ b: 1, a: 2 })).toBe(sha256Hex('{"a":2,"b":1}'));
    expect(sha256Hex(new TextEncoder().encode('{}'))).toBe(canonicalDigest({}));
  });

  it('of a tool definition depend on every part of it (TG-2)', () => {
    const definition = { name: 'issue_refund', sideEffect: 'destructive', schema: {} };
    expect(definitionDigest({ ...definition })).toBe(definitionDigest(definition));
    expect(definitionDigest({ ...definition, sideEffect: 'read_only' })).not.toBe(
      definitionDigest(definition),
    );
  });
});

function isStrict(value: unknown): boolean {
  try {
    parseJsonStrict(JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
