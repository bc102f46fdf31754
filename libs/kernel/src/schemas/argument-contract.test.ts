import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { InvalidRequestError } from '../errors/errors.ts';
import type { JsonObject } from '../json/json-value.ts';
import { compileContract, compileSchema } from './argument-contract.ts';
import { checkArguments } from './check-arguments.ts';

const refund = compileContract({
  type: 'object',
  properties: {
    user_id: { type: 'integer' },
    amount_usd: { type: 'number' },
    reason: { type: 'string', fillable: true },
    note: { type: 'string' },
    lines: { $ref: '#/$defs/lines' },
  },
  required: ['user_id', 'amount_usd', 'reason'],
  additionalProperties: false,
  $defs: {
    lines: {
      type: 'array',
      items: {
        type: 'object',
        properties: { sku: { type: 'string' } },
        required: ['sku'],
        additionalProperties: false,
      },
    },
  },
});

const good = { user_id: 42, amount_usd: 10.5, reason: 'late' };
const problems = (
  args: JsonObject,
  phase: 'proposed' | 'executed' = 'executed',
  contract = refund,
): string[] =>
  checkArguments(contract, args, { phase }).problems.map(
    ({ code, argument }) => `${code}:${argument}`,
  );

describe('checkArguments', () => {
  it('names unknown, missing and wrong-typed arguments one by one (TG-3)', () => {
    expect(problems({ zeta: 1, amount_usd: '5', reason: 7, other: 2 })).toEqual([
      'extra:zeta',
      'extra:other',
      'missing:user_id',
      'bad_type:amount_usd',
      'bad_type:reason',
    ]);
    const [first] = checkArguments(
      refund,
      { ...good, zeta: 'secret' },
      { phase: 'executed' },
    ).problems;
    expect(first?.message).toBe('Argument zeta is not defined by the tool.');
  });

  it('accepts integers as numbers, and rejects booleans as integers and numbers (TG-3)', () => {
    expect(problems({ ...good, amount_usd: 10 })).toEqual([]);
    expect(problems({ ...good, user_id: true, amount_usd: false })).toEqual([
      'bad_type:user_id',
      'bad_type:amount_usd',
    ]);
    expect(problems({ ...good, user_id: 1.5 })).toEqual(['bad_type:user_id']);
    expect(problems({ ...good, user_id: '42' })).toEqual(['bad_type:user_id']);
    expect(problems({ ...good, user_id: null })).toEqual(['bad_type:user_id']);
  });

  it('trims strings at every level without changing the input (TG-3)', () => {
    const given = { ...good, reason: ' late\u0085', lines: [{ sku: ' a ' }] };
    const { args } = checkArguments(refund, given, { phase: 'executed' });
    expect(args).toEqual({ ...good, reason: 'late', lines: [{ sku: 'a' }] });
    expect(given.reason).toBe(' late\u0085');
  });

  it('rejects an empty string for a required argument, not for an optional one (TG-3)', () => {
    expect(problems({ ...good, reason: '   ', note: ' ' })).toEqual(['bad_type:reason']);
    expect(problems({ ...good, note: '' })).toEqual([]);
  });

  it('allows a fillable argument to be missing until execution (TG-3)', () => {
    const { reason: _, ...without } = good;
    expect(problems(without, 'proposed')).toEqual([]);
    expect(problems({ ...without, reason: ' ' }, 'proposed')).toEqual([]);
    expect(problems({ ...without, reason: 5 }, 'proposed')).toEqual(['bad_type:reason']);
    expect(problems(without, 'executed')).toEqual(['missing:reason']);
  });

  it('rejects a number with more decimal places than declared, even in a nested value (TG-3, SV-5)', () => {
    const contract = compileContract({
      type: 'object',
      properties: {
        amount: { type: 'number', decimals: 2 },
        pieces: { type: 'number', decimals: 0 },
        lines: { type: 'array', items: { type: 'number', decimals: 1 } },
      },
    });
    const messages = (args: JsonObject) =>
      checkArguments(contract, args, { phase: 'proposed' }).problems.map(({ message }) => message);
    expect(messages({ amount: 700.55, pieces: 3, lines: [0.5] })).toEqual([]);
    expect(messages({ amount: 700.555, pieces: 2.5, lines: [0.55] })).toEqual([
      'Argument amount must have at most 2 decimal places.',
      'Argument pieces must be a whole number.',
      'Argument lines does not fit its schema.',
    ]);
    expect(messages({ amount: '700.555' })).toEqual(['Argument amount does not fit its schema.']);
  });

  it('validates nested values by the schema and its definitions (TG-3)', () => {
    expect(problems({ ...good, lines: [{ sku: 'a' }] })).toEqual([]);
    expect(problems({ ...good, lines: [{ sku: 'a', more: 1 }] })).toEqual(['bad_type:lines']);
    expect(problems({ ...good, lines: [{}] })).toEqual(['bad_type:lines']);
  });

  it('does not treat inherited names as arguments (TG-3)', () => {
    const odd = compileContract({
      type: 'object',
      properties: { constructor: { type: 'string' } },
      required: ['constructor'],
    });
    expect(problems({}, 'executed', odd)).toEqual(['missing:constructor']);
    expect(problems({ toString: 'x' }, 'executed', odd)).toContain('extra:toString');
  });

  it('rejects each argument whose schema is invalid, without affecting other arguments (SV-2)', () => {
    const odd = compileContract({
      type: 'object',
      properties: {
        price: { type: 'money' },
        code: { pattern: '(a)\\1' },
        name: { type: 'string' },
      },
      required: ['price'],
    });
    expect(odd.unreadable).toEqual(['price', 'code']);
    expect(problems({ name: 'x' }, 'executed', odd)).toEqual(['missing:price']);
    expect(problems({ price: 1, code: 2, name: 3 }, 'executed', odd)).toEqual([
      'unknown_spec:price',
      'unknown_spec:code',
      'bad_type:name',
    ]);
  });

  it('rejects undeclared arguments unless the schema allows them (TG-3)', () => {
    const silent = compileContract({ type: 'object' });
    const open = compileContract({ type: 'object', additionalProperties: { type: 'integer' } });
    const patterned = compileContract({
      type: 'object',
      patternProperties: { '^x-': { type: 'integer' } },
    });
    expect(problems({ a: 1 }, 'executed', silent)).toEqual(['extra:a']);
    expect(problems({ a: 1 }, 'executed', open)).toEqual([]);
    expect(problems({ a: 'x' }, 'executed', open)).toEqual(['bad_type:*']);
    expect(problems({ 'x-a': 1, y: 1 }, 'executed', patterned)).toEqual(['extra:y']);
    expect(problems({ 'x-a': 'no' }, 'executed', patterned)).toEqual(['bad_type:*']);
  });

  it('validates rules over all arguments only when no fillable argument is missing (TG-3)', () => {
    const both = compileContract({
      type: 'object',
      properties: { from: { type: 'integer' }, to: { type: 'integer', fillable: true } },
      required: ['to'],
      dependentRequired: { to: ['from'] },
    });
    expect(problems({}, 'proposed', both)).toEqual([]);
    expect(problems({ to: 1 }, 'executed', both)).toEqual(['bad_type:*']);
    expect(problems({ to: 1, from: 0 }, 'executed', both)).toEqual([]);
  });
});

/** Collects garbage. References of the current turn of the event loop, including WeakRefs, are kept until its end. */
async function collectGarbage(): Promise<void> {
  await setImmediate();
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

describe('compileSchema', () => {
  it('keeps neither the schema nor the compiled function after its last use (BD-1)', async () => {
    const compileAndDrop = (minLength: number) => {
      const properties = { name: { type: 'string', minLength, pattern: `^a{${minLength}}` } };
      expect(compileSchema({ type: 'object', properties })({ name: '' })).toBe(false);
      return new WeakRef(properties);
    };
    const schemas = Array.from({ length: 20 }, (_, n) => compileAndDrop(n + 1));
    await collectGarbage();
    expect(schemas.filter((schema) => schema.deref() !== undefined)).toEqual([]);
  });
});

describe('compileContract', () => {
  it('compiles equal schemas once, regardless of the order of their keys', () => {
    const one = compileContract({ type: 'object', properties: { a: { type: 'string' } } });
    const two = compileContract({ properties: { a: { type: 'string' } }, type: 'object' });
    expect(two).toBe(one);
  });

  it('measures an invalid schema once (BD-1)', () => {
    const error = (): unknown => {
      try {
        return compileContract({ type: 'object', properties: { a: { $ref: '#/$defs/none' } } });
      } catch (thrown) {
        return thrown;
      }
    };
    const copy = vi.spyOn(globalThis, 'structuredClone');
    onTestFinished(() => copy.mockRestore());
    const [first, second] = [error(), error()];
    expect(first).toBeInstanceOf(InvalidRequestError);
    expect(second).toEqual(first);
    // Only a schema that is compiled is copied.
    expect(copy).toHaveBeenCalledTimes(1);
  });

  it('copies the schema', () => {
    const schema = { type: 'object', properties: { late: { type: 'string' } } };
    const contract = compileContract(schema);
    schema.properties.late.type = 'integer';
    expect(contract.schema).toMatchObject({ properties: { late: { type: 'string' } } });
  });

  it('accepts older dialects, and treats format and unknown keywords as annotations', () => {
    const contract = compileContract({
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { at: { type: 'string', format: 'date-time', 'x-order': 1 } },
    });
    expect(problems({ at: 'soon' }, 'executed', contract)).toEqual([]);
  });

  it.each<[string, JsonObject]>([
    ['type', { type: 'array' }],
    ['type', {}],
    ['properties', { type: 'object', properties: [] }],
    ['required', { type: 'object', required: [1] }],
    ['required', { type: 'object', required: ['ghost'] }],
    ['properties.a.fillable', { type: 'object', properties: { a: { fillable: 'yes' } } }],
    ['properties.a.decimals', { type: 'object', properties: { a: { decimals: 2.5 } } }],
    ['patternProperties', { type: 'object', patternProperties: { '(': true } }],
    ['schema', { type: 'object', minProperties: 'many' }],
  ])('rejects a schema with an invalid %s: %j (SYS-3)', (field, schema) => {
    expect(() => compileContract(schema)).toThrow(
      expect.objectContaining({ reason: 'INVALID_ARGUMENT_CONTRACT', metadata: { field } }),
    );
  });
});
