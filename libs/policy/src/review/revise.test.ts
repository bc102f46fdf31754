import { compileContract } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { call, decide, input, policyOf, short } from '../../test/reviews.ts';
import { loadPolicy, type ProposedAction, review } from '../index.ts';

describe('a revision', () => {
  const revise = (set: string) =>
    policyOf(
      `  - { id: r, match: { tool: pay }, decide: revise, reason: r, set: ${set} }\n`,
      'limits: { most: 5 }\n',
    );

  it.each([
    ['{ a: { value: 7 } }', { a: 1 }, { a: 7 }],
    ['{ a: { value: x }, b: { value: true } }', {}, { a: 'x', b: true }],
    ['{ a: { fill: x } }', {}, { a: 'x' }],
    ['{ a: { fill: x } }', { a: ' ' }, { a: 'x' }],
    ['{ a: { fill: x } }', { a: null }, { a: 'x' }],
    ['{ a: { fill: x } }', { a: 'kept' }, { a: 'kept' }],
    ['{ a: { fill: 3 } }', { a: 0 }, { a: 0 }],
    ['{ a: { cel: "limits.most * 2" } }', {}, { a: 10 }],
    ['{ a: { cel: \'args.b + "!"\' } }', { b: 'x' }, { a: 'x!', b: 'x' }],
    ['{ a: { cel: args.b } }', { b: [1, null] }, { a: [1, null], b: [1, null] }],
    ['{ a: { cel: args.b } }', { b: { c: [true] } }, { a: { c: [true] }, b: { c: [true] } }],
    ['{ a: { max: limits.most } }', { a: 9.5 }, { a: 5 }],
    ['{ a: { max: 5 } }', { a: 4.5 }, { a: 4.5 }],
    ['{ a: { min: 1, max: 5 } }', { a: -3 }, { a: 1 }],
    ['{ a: { max: usd(1001) } }', { a: 11 }, { a: 10.01 }],
  ])('by %s changes %j to %j (SV-3)', (set, args, revised) => {
    const decision = decide(revise(set), call('pay', args));
    expect(decision.verdict).toBe('revise');
    expect(decision.revisedAction).toEqual(call('pay', revised));
  });

  it.each([
    ['{ a: { max: 5 } }', {}],
    ['{ a: { max: 5 } }', { a: '9' }],
    ['{ a: { max: args.b } }', { a: 9, b: 'x' }],
    ['{ a: { cel: args.b } }', {}],
    ['{ a: { cel: "9223372036854775807" } }', {}],
  ])(
    'by %s blocks an action with the arguments %j, for which it cannot be computed (SYS-4)',
    (set, args) => {
      expect(short(revise(set), call('pay', args))).toBe('block policy_error:r');
    },
  );

  it('sets an argument to a list or map that an expression computes (SV-3)', () => {
    const list = (type: string) => ({ type: 'array', items: { type } });
    const properties = { tags: list('string'), sums: list('number'), extra: { type: 'object' } };
    const policy = loadPolicy(
      `policy: p
rules:
  - id: r
    match: { tool: pay }
    decide: revise
    reason: r
    set:
      tags: { cel: 'args.tags + ["new"]' }
      sums: { cel: 'args.sums.map(sum, sum + 1.0)' }
      extra: { cel: 'dyn({"sizes": [2, 3]})' }
`,
      { file: 'p.yaml', toolSchemas: { pay: { type: 'object', properties } } },
    );
    const decision = decide(policy, call('pay', { tags: ['old'], sums: [0.5] }));
    const revised = { tags: ['old', 'new'], sums: [1.5], extra: { sizes: [2, 3] } };
    expect(decision.revisedAction).toEqual(call('pay', revised));
  });

  it.each([['{"until": duration("1s")}'], ['[9223372036854775807]']])(
    'blocks an action if %s has a part that is not a JSON value (SYS-4)',
    (cel) => {
      const set = `{ a: { cel: 'dyn(${cel})' } }`;
      expect(short(revise(set), call('pay'))).toBe('block policy_error:r');
    },
  );

  it('is validated against the schema of the tool again (SV-3, TG-3)', () => {
    const contract = compileContract({
      type: 'object',
      properties: { a: { type: 'integer' }, note: { type: 'string', fillable: true } },
      required: ['a', 'note'],
    });
    const contractOf = (tool: string) => (tool === 'pay' ? contract : undefined);
    const run = (set: string, action: ProposedAction) =>
      decide(revise(set), action, { contractOf });
    expect(run('{ a: { value: 7 } }', call('pay', {})).verdict).toBe('revise');
    expect(run('{ note: { value: " x " } }', call('pay', { a: 1 })).revisedAction?.args).toEqual({
      a: 1,
      note: 'x',
    });
    for (const set of ['{ a: { value: 7.5 } }', '{ a: { value: x } }', '{ b: { value: 1 } }']) {
      expect(run(set, call('pay', { a: 1 })).reason).toBe('invalid_revision:r');
    }
    const unknown = review(revise('{ a: { value: 1 } }'), {
      ...input(revise('{}'), call('pay', {})),
      contractOf: () => undefined,
    });
    expect(unknown.reason).toBe('invalid_revision:r');
  });
});
