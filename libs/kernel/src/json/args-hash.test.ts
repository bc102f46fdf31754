import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { argsHash, argsHashText } from './args-hash.ts';
import { parseJsonStrict } from './json.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json-value.ts';

const file = parseJsonStrict(
  readFileSync(new URL('../../test/args-hash-vectors.json', import.meta.url)),
);
const vectors = isJsonObject(file) && Array.isArray(file.vectors) ? file.vectors : [];

/** Arguments with any keys except `__proto__`. */
const args = fc.dictionary(
  fc.string({ unit: 'binary', maxLength: 4 }).filter((key) => key !== '__proto__'),
  fc.jsonValue(),
) as fc.Arbitrary<JsonObject>;

/** Reverses the order of the keys of every object in `value`. */
function withReversedKeys(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withReversedKeys);
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).map(
    ([key, member]) => [key, withReversedKeys(member)] as const,
  );
  return Object.fromEntries(members.reverse());
}

describe('argsHash', () => {
  it('computes the hash of the specification (TG-4)', () => {
    expect(argsHash({ user_id: 42 })).toBe('feaa769a39ae');
  });

  it('treats absent arguments as empty (TG-4)', () => {
    expect(argsHash(undefined)).toBe(argsHash({}));
    expect(argsHash(null)).toBe(argsHash({}));
  });

  it('has shared test vectors for other languages (TG-4)', () => {
    expect(vectors.length).toBeGreaterThan(20);
  });

  it.each(vectors)('matches the shared vector: $name (TG-4)', (vector) => {
    expect(argsHashText(vector.args)).toBe(vector.text);
    expect(argsHash(vector.args)).toBe(vector.hash);
  });

  it('does not depend on the order of keys, also of nested objects (TG-4)', () => {
    fc.assert(
      fc.property(args, (value) => {
        const list = [{ nested: value, other: 1 }];
        expect(argsHash({ list: withReversedKeys(list) })).toBe(argsHash({ list }));
        expect(argsHashText(withReversedKeys(value))).toBe(argsHashText(value));
      }),
    );
  });

  it('ignores the amount of white space inside strings and white space at their ends (TG-4)', () => {
    const word = fc.stringMatching(/^[a-z]{1,5}$/);
    const space = fc
      .array(fc.constantFrom(' ', '\t', '\n', '\u0085', '\u00a0', '\u3000'), { minLength: 1 })
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(word, word, space, space, (left, right, inner, outer) => {
        expect(argsHash({ s: `${outer}${left}${inner}${right}${outer}` })).toBe(
          argsHash({ s: `${left} ${right}` }),
        );
      }),
    );
  });

  it('hashes pure ASCII, with keys sorted by code point (TG-4)', () => {
    fc.assert(
      fc.property(args, (value) => {
        const text = argsHashText(value);
        expect(text).toMatch(/^[ -~]*$/);
        const keys = Object.keys(JSON.parse(text) as object);
        const byUtf8 = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
        // JSON.parse moves index-like keys to the front, so the comparison omits them.
        const plain = (all: string[]): string[] => all.filter((key) => !/^\d+$/.test(key));
        expect(plain(keys)).toEqual(plain(byUtf8));
      }),
    );
  });
});
