import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { compileContract, compileSchema } from './argument-contract.ts';
import { checkArguments } from './check-arguments.ts';
import { SCHEMA_LIMITS } from './schema-limits.ts';

const schemaOf = (spec: JsonValue, $defs: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties: { value: spec },
  $defs,
});
const isValid = (schema: JsonObject, value: JsonValue): boolean =>
  checkArguments(compileContract(schema), { value }, { phase: 'executed' }).problems.length === 0;
const refused = (
  schema: JsonObject,
  compile: (schema: JsonObject) => unknown = compileContract,
): string => {
  try {
    compile(schema);
  } catch (error) {
    return String(error);
  }
  return 'accepted';
};
const nested = (levels: number, inner: JsonValue): JsonValue =>
  levels === 0 ? inner : { type: 'array', items: nested(levels - 1, inner) };
/** A subschema that accepts no value, and whose pattern exceeds the limit for one value. */
const heavy = { not: {}, pattern: 'a{600}b{600}' };

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

  it('limits the expansion of all arguments together (BD-1)', () => {
    const levels = Array.from({ length: 10 }, (_, level) => {
      const next = { $ref: `#/$defs/l${level + 1}` };
      return [`l${level}`, { properties: { a: next, b: next } }] as const;
    });
    const $defs = { ...Object.fromEntries(levels), l10: true };
    const withArguments = (count: number): JsonObject => ({
      type: 'object',
      properties: Object.fromEntries(
        Array.from({ length: count }, (_, n) => [`p${n}`, { $ref: '#/$defs/l0' }]),
      ),
      $defs,
    });
    expect(refused(withArguments(15))).toBe('accepted');
    expect(refused(withArguments(20))).toContain('expands to more than 50000');
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

  const membersOf = (count: number, spec: (n: number) => JsonValue): JsonObject => ({
    properties: Object.fromEntries(Array.from({ length: count }, (_, n) => [`m${n}`, spec(n)])),
  });

  it('counts a definition once for each alias, as often as Ajv compiles it (BD-1)', () => {
    const aliased = (count: number, alias: JsonObject): JsonObject => {
      const names = Array.from({ length: count }, (_, n) => [`a${n}`, alias] as const);
      const large = membersOf(500, () => ({ type: 'string' }));
      const members = membersOf(count, (n) => ({ $ref: `#/$defs/a${n}` }));
      return schemaOf(members, { large, ...Object.fromEntries(names) });
    };
    const alias = { $ref: '#/$defs/large', description: 'An alias.' };
    expect(refused(aliased(4, alias))).toContain('subschemas; the limit is 2000');
    expect(refused(aliased(3, alias))).toBe('accepted');
    expect(refused(aliased(4, { type: 'object', $ref: '#/$defs/large' }))).toBe('accepted');
  });

  it('counts a subschema once for each reference to an enclosing subschema (BD-1)', () => {
    const recursive = (levels: number): JsonObject => {
      const pointer = (n: number) => `#/$defs/d${'/properties/m0'.repeat(n)}`;
      const innermost = membersOf(200, (n) => (n < levels ? { $ref: pointer(n) } : { minimum: n }));
      return Array.from({ length: levels }).reduce<JsonObject>(
        (inner) => membersOf(1, () => inner),
        innermost,
      );
    };
    expect(refused(schemaOf({ $ref: '#/$defs/d' }, { d: recursive(4) }))).toBe('accepted');
    expect(refused(schemaOf({ $ref: '#/$defs/d' }, { d: recursive(11) }))).toContain(
      'subschemas; the limit is 2000',
    );
  });

  it('counts subschemas that are true or false (BD-1)', () => {
    const combined = (count: number): JsonObject => ({ anyOf: Array<JsonValue>(count).fill(true) });
    expect(refused(schemaOf(membersOf(2_000, () => true)))).toContain('the limit is 2000');
    expect(refused(schemaOf(combined(2_000)))).toContain('the limit is 2000');
    expect(refused(schemaOf(membersOf(1_500, () => true)))).toBe('accepted');
  });

  const referring = (references: number, properties: number): JsonObject => ({
    anyOf: Array<JsonValue>(references).fill({ $ref: '#/$defs/large' }),
    $defs: { large: membersOf(properties, () => true) },
  });

  it('compiles many references to a schema with many properties in the sum of their times (BD-1)', () => {
    const timeOf = (references: number, properties: number): number => {
      const start = process.threadCpuUsage();
      expect(refused(referring(references, properties), compileSchema)).toBe('accepted');
      const { user, system } = process.threadCpuUsage(start);
      return user + system;
    };
    timeOf(2, 2);
    const separately = timeOf(450, 1) + timeOf(1, 1_500);
    // With a statement for each property of each reference, the time would be near the product.
    expect(timeOf(450, 1_500)).toBeLessThan(5 * separately);
  });

  it('limits references and properties of a schema with unevaluated keywords (BD-1)', () => {
    const rule = { unevaluatedProperties: false };
    expect(refused({ ...referring(100, 1_000), ...rule }, compileSchema)).toContain(
      'unevaluatedProperties and unevaluatedItems: 1004000',
    );
    const accepts = compileSchema({ ...referring(20, 20), ...rule });
    expect([accepts({ m3: 1 }), accepts({ other: 1 })]).toEqual([true, false]);
    const items = compileSchema({ prefixItems: [true], unevaluatedItems: false });
    expect([items([1]), items([1, 2])]).toEqual([true, false]);
  });

  /** Definitions that each apply the next one, the last of which refers to all. */
  const chainOf = (count: number): JsonObject => {
    const chain = Array.from({ length: count }, (_, n): [string, JsonObject] => [
      `d${n}`,
      { properties: { a: { $ref: `#/$defs/d${n + 1}` } } },
    ]);
    const last = membersOf(count, (n) => ({ $ref: `#/$defs/d${n}` }));
    return schemaOf({ $ref: '#/$defs/d0' }, { ...Object.fromEntries(chain), [`d${count}`]: last });
  };

  it('limits the work to measure recursive definitions (BD-1)', () => {
    expect(refused(chainOf(10))).toBe('accepted');
    expect(refused(chainOf(60))).toContain('expands to more than 50000');
    expect(refused(chainOf(400))).toContain('more than 256 subschemas that enclose each other');
  });

  it('refuses a long chain of references without exhausting the stack (BD-1)', () => {
    const more = Array.from({ length: 2_000 }, (_, n) => ({ not: { $ref: `#/more/${n + 1}` } }));
    expect(
      refused({ type: 'object', allOf: [{ $ref: '#/more/0' }], more: [...more, {}] }),
    ).toContain('more than 256 subschemas that enclose each other');
  });

  it('refuses a function that is too long to be parsed (BD-1)', () => {
    const members = (count: number) => membersOf(count, () => ({ enum: [0, 1, 2, 3, 4, 5] }));
    expect(refused(members(1_900), compileSchema)).toContain(
      'has 1901 subschemas that are not separated by a $ref; the limit is 1100',
    );
    const names = Array.from({ length: 1_500 }, (_, n) => [`m${n}`, ['a']] as const);
    expect(refused({ dependentRequired: Object.fromEntries(names) }, compileSchema)).toContain(
      'not separated by a $ref; the limit is 1100',
    );
    const accepts = compileSchema({ items: { $ref: '#/$defs/a' }, $defs: { a: members(1_050) } });
    expect([accepts([{ m1: 5 }]), accepts([{ m1: 6 }])]).toEqual([true, false]);
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

  it.each<[string, JsonObject]>([
    ['has 70018 bytes; the limit is 65536', { description: 'x'.repeat(70_000) }],
    ['has 2502 subschemas; the limit is 2000', membersOf(2_501, () => ({}))],
    ['uses $anchor, which is not supported', { items: { $anchor: 'a' } }],
    ['is not valid JSON Schema 2020-12', { type: 'money' }],
  ])('reports that a schema that is not an argument contract %s (SYS-3)', (rule, schema) => {
    expect(refused(schema, compileSchema)).toBe(
      `InvalidRequestError: The JSON Schema is unusable: it ${rule}.`,
    );
  });

  const unsupported = ['$id', '$anchor', '$dynamicAnchor', '$dynamicRef', '$recursiveRef'];

  it.each([...unsupported, '$recursiveAnchor'])(
    'refuses %s, which cannot be measured (BD-1)',
    (keyword) => {
      expect(refused(schemaOf({ [keyword]: 'a' }))).toContain(`uses ${keyword}`);
    },
  );

  it.each<[string, (schema: JsonObject) => JsonObject]>([
    ['a definition without a reference', (schema) => schemaOf(true, { unused: schema })],
    ['an unknown keyword', (schema) => schemaOf({ 'x-more': { some: [schema] } })],
    [
      'an unknown keyword that Ajv searches as a map',
      (schema) => schemaOf({ constructor: { default: schema } }),
    ],
    ['an unknown keyword of the contract', (schema) => ({ type: 'object', 'x-more': schema })],
    [
      'dependentSchemas, which Ajv searches as a schema',
      (schema) => ({ type: 'object', dependentSchemas: { properties: { const: schema } } }),
    ],
    ['an argument named like a keyword', (schema) => schemaOf({ properties: { default: schema } })],
    ['examples that are not a list', (schema) => schemaOf({ examples: { one: schema } })],
  ])('refuses unsupported keywords in %s (BD-1)', (_, place) => {
    for (const keyword of unsupported) {
      expect(refused(place({ [keyword]: 'a' }))).toContain(`uses ${keyword}`);
    }
  });

  it('refuses $async, with which Ajv reports an invalid value by a rejected promise (BD-1)', () => {
    const schema = { type: 'object', $async: true, minProperties: 1 };
    expect(refused(schema)).toContain('uses $async');
    expect(refused(schema, compileSchema)).toContain('uses $async');
  });

  it('accepts the names of unsupported keywords as names of members and in data (TG-3)', () => {
    const data = { $id: 'a', $anchor: 'a' };
    const named = { properties: { $id: { type: 'string' }, $anchor: { default: data } } };
    const anyOf = [named, { const: data }, { enum: [data] }, { examples: [data] }];
    const schema = schemaOf({ anyOf });
    expect(isValid(schema, { $id: 'b' })).toBe(true);
    expect(refused({ $id: 'https://example.com/tool', ...schema })).toBe('accepted');
  });

  it('refuses definitions that double at each level by references to anchors or identifiers (BD-1)', () => {
    const doubling = (keyword: string, prefix: string) =>
      Object.fromEntries(
        Array.from({ length: 26 }, (_, level) => {
          const next = { $ref: `${prefix}d${level + 1}` };
          return [`d${level}`, { [keyword]: `d${level}`, allOf: [next, next] }];
        }),
      );
    for (const [keyword, prefix] of [
      ['$anchor', '#'],
      ['$dynamicAnchor', '#'],
      ['$id', ''],
    ] as const) {
      const last = { d26: { [keyword]: 'd26' } };
      const schema = schemaOf({ $ref: `${prefix}d0` }, { ...doubling(keyword, prefix), ...last });
      expect(refused(schema)).toContain(`uses ${keyword}`);
    }
  });

  it.each([
    '',
    '#/',
    '#/$defs/named#',
    '#/$defs/named#/',
    '#/$defs/\ud800',
    '#/$defs/data/const/inner',
    '#/$defs/missing',
    '#/$defs/constructor',
    '#/$defs/named/pattern',
    '#named',
    'named',
    'older',
    'http://json-schema.org/schema',
    'https://json-schema.org/draft/2020-12/schema',
    'https://json-schema.org/draft/2020-12/schema#/$defs/anchorString',
  ])('refuses the reference %j, whose target cannot be measured (BD-1)', ($ref) => {
    const data = { const: { $id: 'https://json-schema.org/draft/2020-12/schema', inner: true } };
    const other = { 'named#': { '': true }, '\ud800': true, older: { id: 'older' }, data };
    const $defs = { named: heavy, '\ufffd': heavy, ...other };
    const schema = { $defs, '': true, allOf: [{ $ref }] };
    expect(refused(schema, compileSchema)).toContain(`refers to ${JSON.stringify($ref)}`);
  });

  it('measures the subschema that Ajv applies for any reference (BD-1)', () => {
    const part = fc.array(fc.constantFrom('a', 'é', '/', '#', '?', '~', '%', '<', '😀', ' '), {
      maxLength: 3,
    });
    const name = part.map((characters) => characters.join(''));
    const encoded = fc.constantFrom<(text: string) => string>(
      (text) => text,
      encodeURI,
      encodeURIComponent,
      (text) => encodeURIComponent(encodeURIComponent(text)),
      (text) => text.replaceAll('~', '~0').replaceAll('/', '~1'),
      (text) => encodeURIComponent(text.replaceAll('~', '~0').replaceAll('/', '~1')),
      (text) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16)}`).join(''),
    );
    const names = fc.array(name, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(names, fc.nat(3), encoded, name, (all, at, encode, end) => {
        const [target = ''] = all;
        const $defs = Object.fromEntries(all.map((one) => [one, true]));
        const $ref = `#/$defs/${encode(target)}${end}`;
        const heavyName = all[at % all.length] ?? '';
        const schema = { $defs: { ...$defs, [heavyName]: heavy }, allOf: [{ $ref }] };
        if (refused(schema, compileSchema) !== 'accepted') return;
        // The heavy definition accepts no value, so Ajv has not applied it.
        expect(compileSchema(schema)(1)).toBe(true);
      }),
    );
  });

  it('counts references with percent-encoding and references into unknown keywords (BD-1)', () => {
    const $defs = { 'List<a/b>': { type: 'string' }, other: { 'x-more': [heavy] } };
    expect(isValid(schemaOf({ $ref: '#/$defs/List%3Ca~1b%3e' }, $defs), 'text')).toBe(true);
    expect(isValid(schemaOf({ $ref: '#/%24defs/List<a~1b>' }, $defs), 1)).toBe(false);
    expect(refused(schemaOf({ $ref: '#/$defs/other/x-more/0' }, $defs))).toContain(
      'instructions for one value; the limit',
    );
  });

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
