import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { compileContract } from './argument-contract.ts';
import { checkArguments } from './check-arguments.ts';
import { SCHEMA_LIMITS } from './schema-limits.ts';

const schemaOf = (spec: JsonValue, $defs: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties: { value: spec },
  $defs,
});
const isValid = (schema: JsonObject, value: JsonValue): boolean =>
  checkArguments(compileContract(schema), { value }, { phase: 'executed' }).problems.length === 0;
const refused = (schema: JsonObject): string => {
  try {
    compileContract(schema);
  } catch (error) {
    return String(error);
  }
  return 'accepted';
};
const nested = (levels: number, inner: JsonValue): JsonValue =>
  levels === 0 ? inner : { type: 'array', items: nested(levels - 1, inner) };

describe('a schema of a tool', () => {
  it('matches a pattern in linear time even if backtracking would need exponential time (BD-1)', () => {
    const email = schemaOf({ type: 'string', pattern: '^([a-zA-Z0-9]+)+@example\\.com$' });
    expect(isValid(email, 'ann@example.com')).toBe(true);
    // Backtracking would take longer than the age of the universe.
    expect(isValid(email, 'a'.repeat(60_000))).toBe(false);
  });

  it('matches patterns of JSON Schema as ECMAScript does (TG-3)', () => {
    const cases: [string, string, boolean][] = [
      ['^\\u00e9+$', 'éé', true],
      ['^\\p{L}+$', 'ß', true],
      ['[0-9]{3}', 'a123b', true],
      ['^\\d{4}-\\d{2}$', '2026-1', false],
      ['^(?<year>\\d+)$', '12', true],
      ['^[\\w.-]+$', 'a.b-c', true],
      ['^\\/$', '/', true],
      ['^.$', '😀', true],
    ];
    for (const [pattern, text, expected] of cases) {
      expect([pattern, isValid(schemaOf({ pattern }), text)]).toEqual([pattern, expected]);
    }
  });

  it.each(['(?=a)b', '(a)\\1', 'a{1001}'])(
    'reports the unsupported pattern %s (BD-1)',
    (pattern) => {
      expect(compileContract(schemaOf({ pattern })).unreadable).toEqual(['value']);
    },
  );

  it('refuses definitions that double at each level (BD-1)', () => {
    const levels = Array.from({ length: 26 }, (_, level) => {
      const next = { $ref: `#/$defs/l${level + 1}` };
      return [`l${level}`, { anyOf: [next, next] }] as const;
    });
    const $defs = { ...Object.fromEntries(levels), l26: { const: 1 } };
    expect(refused(schemaOf({ $ref: '#/$defs/l0' }, $defs))).toContain(
      'expands to more than 50000',
    );
  });

  it('refuses too many alternatives for one value, but not for different members (BD-1)', () => {
    const alternatives = Array.from({ length: 1_000 }, (_, n) => ({ const: n }));
    expect(refused(schemaOf({ anyOf: alternatives }))).toContain(
      'subschemas to one value; the limit',
    );
    const members = Object.fromEntries(alternatives.map((spec, n) => [`m${n}`, spec]));
    expect(refused(schemaOf({ properties: members }))).toBe('accepted');
  });

  it('refuses patterns with too many instructions for one value (BD-1)', () => {
    const anyOf = [1, 2, 3].map((n) => ({ pattern: `^[ab]*a[ab]{40${n}}c$` }));
    expect(refused(schemaOf({ anyOf }))).toMatch(
      /patterns with \d+ instructions for one value; the limit/,
    );
  });

  it('accepts recursive definitions that apply once to each member (BD-1)', () => {
    const all = { $ref: '#/$defs/filter' };
    const filter = {
      type: 'object',
      anyOf: [
        { properties: { and: { type: 'array', items: all } }, required: ['and'] },
        { properties: { or: { type: 'array', items: all } }, required: ['or'] },
        { properties: { not: all }, required: ['not'] },
        { properties: { is: { type: 'string' } }, required: ['is'] },
      ],
    };
    const schema = schemaOf(all, { filter });
    expect(isValid(schema, { and: [{ is: 'a' }, { not: { or: [{ is: 'b' }] } }] })).toBe(true);
    expect(isValid(schema, { and: [{ is: 'a' }, { not: { or: [{}] } }] })).toBe(false);
  });

  it.each<[string, JsonObject]>([
    [
      'twice to one member',
      { anyOf: [{ items: { $ref: '#/$defs/a' } }, { items: { $ref: '#/$defs/a' } }] },
    ],
    [
      'directly and through another definition',
      { anyOf: [{ items: { $ref: '#/$defs/a' } }, { items: { $ref: '#/$defs/b' } }] },
    ],
    ['to the same value', { allOf: [{ $ref: '#/$defs/a' }] }],
    [
      'by name and by pattern',
      {
        properties: { x: { $ref: '#/$defs/a' } },
        patternProperties: { '^x': { $ref: '#/$defs/a' } },
      },
    ],
  ])('refuses a recursive definition that applies itself %s (BD-1)', (_, a) => {
    const b = { items: { items: { $ref: '#/$defs/a' } } };
    expect(refused(schemaOf({ $ref: '#/$defs/a' }, { a, b }))).toContain(
      'definition that applies itself',
    );
  });

  it('refuses a schema that is too large or too deep, before compiling it (BD-1)', () => {
    expect(refused(schemaOf({ description: 'x'.repeat(SCHEMA_LIMITS.bytes) }))).toContain(
      'bytes; the limit is 65536',
    );
    expect(refused(schemaOf(nested(40, true)))).toContain('deeper than 32 levels');
    const specs = Object.fromEntries(
      Array.from({ length: 250 }, (_, n) => [`p${n}`, { $ref: '#/$defs/d' }]),
    );
    const d = { prefixItems: Array.from({ length: 20 }, () => ({ type: 'string' })) };
    expect(refused({ type: 'object', properties: specs, $defs: { d } })).toContain(
      'subschemas; the limit is 2000',
    );
  });

  it('refuses too many arguments and patterns that take long to compile (BD-1)', () => {
    const of = (count: number, spec: JsonValue): JsonObject => ({
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, spec])),
    });
    expect(refused(of(257, true))).toContain('257 arguments; the limit is 256');
    expect(refused(of(100, { pattern: '^[a-z]{900}$' }))).toContain('the limit is 20000');
    expect(refused(of(256, { pattern: '^[a-z]+$' }))).toBe('accepted');
  });

  it.each(['$dynamicRef', '$id', '$anchor', '$dynamicAnchor'])(
    'refuses %s, which cannot be measured (BD-1)',
    (keyword) => {
      expect(refused(schemaOf({ [keyword]: 'a' }))).toContain(`uses ${keyword}`);
    },
  );

  it('finds equal items of long lists without comparing all pairs (BD-1)', () => {
    const schema = schemaOf({ type: 'array', uniqueItems: true });
    const items = Array.from({ length: 60_000 }, (_, n) => ({ n }));
    expect(isValid(schema, items)).toBe(true);
    expect(isValid(schema, [...items, { n: 5 }])).toBe(false);
    expect(
      isValid(schema, [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ]),
    ).toBe(false);
  });
});
