import { sha256Hex } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { loadPolicy, reloadPolicy } from '../src/index.ts';
import { problemsOf, rule, ruleWhen, toolSchemas } from './policy-document.ts';

const good = `policy: p
limits:
  most: { usd: 10.999 }
  count: 3
  ratio: 1.0
  on: true
  tiers: [gold, silver]
facts:
  paid: { kind: cap, type: cents, initial: 0, updates: [{ tool: pay, count: cents(args.amount) }] }
  tier: { kind: gate, initial: "none", updates: [{ tool: "p*", set: result.tier }] }
rules:
  - { id: a, match: { tool: pay }, decide: approve, reason: fine }
`;

describe('loading a policy', () => {
  it('uses the hash of the text as its version (SV-3)', () => {
    const policy = loadPolicy(good, { file: 'p.yaml', toolSchemas });
    expect(policy.version).toBe(sha256Hex(good));
    expect(policy.limits).toEqual({
      most: 1099n,
      count: 3n,
      ratio: 1,
      on: true,
      tiers: ['gold', 'silver'],
    });
    expect(policy.facts.map(({ name, type }) => [name, type])).toEqual([
      ['paid', 'cents'],
      ['tier', 'string'],
    ]);
  });

  it.each([
    ['', 'p.yaml:1:1: the document must be a mapping, not left empty.'],
    ['policy: p\n', 'p.yaml:1:1: the document must have the key rules.'],
    [
      `${good}extra: 1\n`,
      'p.yaml:13:1: unknown key extra; expected policy, about, limits, facts, outcomes, rules or human.',
    ],
    [
      rule('    decide: aprove\n    reason: x\n'),
      'p.yaml:4:13: rules[0].decide must be one of approve, revise, block or escalate, not "aprove".',
    ],
    [rule('    decide: block\n'), 'p.yaml:3:5: rules[0] must have the key reason.'],
    [
      rule('    decide: block\n    reason: Not A Word\n'),
      'p.yaml:5:13: rules[0].reason must be a name that matches',
    ],
    [
      rule('    decide: block\n    reason: no\n    risk: 101\n'),
      'p.yaml:6:11: rules[0].risk must be a whole number from 0 to 100, not 101.',
    ],
    [
      rule('    decide: block\n    reason: no\n    when:\n'),
      'p.yaml:6:10: rules[0].when must be a CEL expression.',
    ],
    [
      rule('    decide: block\n    reason: no\n    set: { amount: { value: 1 } }\n'),
      'p.yaml:6:10: rules[0].set is only for rules that decide revise.',
    ],
    [
      rule('    decide: revise\n    reason: no\n    set: { amount: { value: 1 } }\n'),
      'p.yaml:3:5: rules[0] decides revise, so it must have match.tool and set.',
    ],
    [
      `${good}  - { id: a, decide: block, reason: no }\n`,
      'p.yaml:13:5: rules[1].id a is used twice.',
    ],
    [
      rule('    match: { kind: tol }\n    decide: block\n    reason: no\n'),
      'p.yaml:4:20: rules[0].match.kind must be one of tool, final, delegation or client_tool, not "tol".',
    ],
    [
      rule('    match: { kind: final, tool: pay }\n    decide: block\n    reason: no\n'),
      'p.yaml:4:33: rules[0].match.tool never matches: only actions of kind tool and client_tool have a tool.',
    ],
    [
      rule('    match: { tool: pay, target: x }\n    decide: block\n    reason: no\n'),
      'p.yaml:4:33: rules[0].match.target never matches an action that has a tool.',
    ],
    [
      rule('    match: { priority: [HIGH, high] }\n    decide: block\n    reason: no\n'),
      'p.yaml:4:31: rules[0].match.priority[1] must be one of BACKGROUND, LOW',
    ],
    [
      rule('    match: { tool: [] }\n    decide: block\n    reason: no\n'),
      'p.yaml:4:20: rules[0].match.tool must not be empty.',
    ],
    ['policy: p\nrules: {}\n', 'p.yaml:2:8: rules must be a list, not a mapping.'],
    ['policy: p\npolicy: q\nrules: []\n', 'p.yaml:2:1: Map keys must be unique'],
    ['policy: p\nrules: [\n', 'p.yaml:3:1: '],
    [
      'policy: p\nlimits: { a: &x 1, b: *x }\nrules: []\n',
      'p.yaml:2:23: aliases are not supported; repeat the value.',
    ],
    [
      'policy: p\nlimits: { A: 1 }\nrules: []\n',
      'p.yaml:2:14: limits.A must have a name that matches',
    ],
    [
      'policy: p\nlimits: { a: { eur: 1 } }\nrules: []\n',
      'p.yaml:2:16: unknown key limits.a.eur; expected usd.',
    ],
  ])('rejects %j at the position of the problem (SV-3)', (text, problem) => {
    expect(problemsOf(text)).toContainEqual(expect.stringContaining(problem));
  });

  it.each([
    ['kind: cup, initial: 0', '2:14: facts.f.kind must be one of cap or gate, not "cup".'],
    ['kind: cap', '2:6: facts.f must have the key initial.'],
    ['kind: cap, initial: true', '2:28: facts.f.initial must be a whole number.'],
    ['kind: gate, type: bool, initial: 1', '2:41: facts.f.initial must be of type bool.'],
    [
      'kind: cap, initial: 0, updates: [{ tool: pay }]',
      '2:41: facts.f.updates[0] must have the key count.',
    ],
    [
      'kind: gate, initial: 0, updates: [{ tool: pay, count: 1 }]',
      '2:55: unknown key facts.f.updates[0].count; expected tool, when or set.',
    ],
    [
      'kind: cap, initial: 0, updates: [{ tool: pay, count: args.amount }]',
      '2:61: facts.f.updates[0].count must evaluate to int, not double.',
    ],
    [
      'kind: cap, initial: 0, updates: [{ tool: pay, count: cents(args.amonut) }]',
      '2:67: facts.f.updates[0].count: args.amonut does not exist; available: amount, note,',
    ],
    [
      'kind: cap, initial: 0, updates: [{ tool: pay, count: 1, add: cents(args.amount) }]',
      '2:75: facts.f.updates[0].add: Unknown variable: args.',
    ],
    [
      'kind: gate, initial: 0, updates: [{ tool: pay, set: counted }]',
      '2:60: facts.f.updates[0].set: Unknown variable: counted.',
    ],
    [
      'kind: gate, initial: false, updates: [{ tool: pay, set: size(result) > 0 }]',
      '2:69: facts.f.updates[0].set: name the required fields of the result',
    ],
    [
      'kind: gate, initial: false, updates: [{ tool: pay, set: 1 }]',
      '2:64: facts.f.updates[0].set must evaluate to bool, not int.',
    ],
  ])('rejects the fact {%s} at the position of the problem (SV-3)', (fact, problem) => {
    const text = `facts:\n  f: { ${fact} }\npolicy: p\nrules: []\n`;
    expect(problemsOf(text)).toContainEqual(expect.stringContaining(`p.yaml:${problem}`));
  });

  it('reports every problem of a document in document order (SV-3)', () => {
    const text = `${ruleWhen('args.nope == 1')}  - { id: b, decide: no }\nhuman: { caps: [{ tool: pay, argument: amount }] }\n`;
    expect(problemsOf(text).map((problem) => problem.slice(0, 11))).toEqual([
      'p.yaml:5:11',
      'p.yaml:8:5:',
      'p.yaml:8:22',
      'p.yaml:9:17',
    ]);
  });
});

describe('reloading a policy', () => {
  it('keeps the last valid version active when the new document is invalid (SV-3)', () => {
    const options = { file: 'p.yaml', toolSchemas };
    const first = reloadPolicy(undefined, good, options).policy;
    const second = reloadPolicy(first, `${good}extra: 1\n`, options);
    expect(second.policy).toBe(first);
    expect(second.refused).toMatchObject({
      kind: 'invalid_argument',
      file: 'p.yaml',
      line: 13,
      column: 1,
    });
    const third = reloadPolicy(first, `${good}about: New.\n`, options);
    expect(third.refused).toBeUndefined();
    expect(third.policy?.about).toBe('New.');
  });

  it('returns no policy when the first document is invalid (SYS-4)', () => {
    const { policy, refused } = reloadPolicy(undefined, 'rules: []\n', { file: 'p.yaml' });
    expect(policy).toBeUndefined();
    expect(refused?.message).toBe('p.yaml:1:1: the document must have the key policy.');
  });
});
