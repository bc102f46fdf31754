import { sha256Hex } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { loadPolicy, PolicyError, reloadPolicy } from '../index.ts';

const toolSchemas = {
  pay: {
    type: 'object',
    properties: {
      amount: { type: 'number' },
      note: { type: 'string' },
      urgent: { type: 'boolean' },
      tags: { type: 'array', items: { type: 'string' } },
      to: { type: 'object', properties: { iban: { type: 'string' } } },
      any: {},
    },
  },
  pay_later: { type: 'object', properties: { amount: { type: 'string' } } },
};

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

function problemsOf(text: string): readonly string[] {
  try {
    loadPolicy(text, { file: 'p.yaml', toolSchemas });
    return [];
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    return error.message.split('\n');
  }
}

const rule = (lines: string) => `policy: p\nrules:\n  - id: a\n${lines}`;
const ruleWhen = (when: string, match = 'tool: pay') =>
  rule(`    match: { ${match} }\n    when: ${when}\n    decide: block\n    reason: no\n`);

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
      'p.yaml:4:33: rules[0].match.tool never matches: only actions of kind tool and client_tool have one.',
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
      'p.yaml:4:20: rules[0].match.tool must name at least one.',
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
    ['kind: cap, initial: true', '2:28: facts.f.initial must be a value that a cap can have.'],
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

  it.each([
    [
      'args.amont > 1.0',
      '5:11: rules[0].when: args.amont does not exist; available: amount, note, urgent, tags, to or any.',
    ],
    ['has(args.amont)', '5:15: rules[0].when: args.amont does not exist; available:'],
    ['"!has(args.amont)"', '5:17: rules[0].when: args.amont does not exist; available:'],
    [
      'args.amount > 1.0 && facts.x',
      '5:32: rules[0].when: facts.x does not exist; available: none.',
    ],
    ['args.to.bic == "x"', '5:19: rules[0].when: No such key: bic.'],
    [
      'args.amount == 1',
      '5:11: rules[0].when: no such overload: double == int (numbers in arguments are doubles',
    ],
    ['args.note > 1', '5:11: rules[0].when: no such overload: string > int.'],
    ['args.amount', '5:11: rules[0].when must evaluate to bool, not double.'],
    ['args.amount >', '5:24: rules[0].when: Unexpected token: EOF.'],
    ['nope == 1', '5:11: rules[0].when: Unknown variable: nope.'],
    [
      'cents(args.note) > 1',
      "5:11: rules[0].when: found no matching overload for 'cents(string)'.",
    ],
    ['supervision.dept > 1', '5:11: rules[0].when: supervision.dept does not exist; available:'],
    [
      'budget.steps > 1',
      '5:11: rules[0].when: budget.steps does not exist; available: steps_used,',
    ],
    ['args.tags.exists(t, t == 1)', '5:31: rules[0].when: no such overload: string == int.'],
    [
      '|\n      args.urgent &&\n        args.nope',
      '7:9: rules[0].when: args.nope does not exist; available:',
    ],
  ])('rejects the condition %j at the position of the problem (SV-3)', (when, problem) => {
    const found = problemsOf(ruleWhen(when));
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(`p.yaml:${problem}`);
  });

  it.each([
    ['args.amount > 1.0', 'tool: pay'],
    ['args.amount > 1', 'tool: pay'],
    ['is_number(args.amount) && blank(args.note)', 'tool: pay'],
    ['args.to.iban.startsWith("DE") && "x" in args.tags', 'tool: pay'],
    ['args.any == 5 || args.any.thing', 'tool: pay'],
    ['has(args.amount)', 'tool: "pay*"'],
    ['args.whatever == "x"', 'tool: unheard_of'],
    ['priority >= HIGH && supervision.depth == 0 && agent.depth < 3', 'kind: final'],
    ['action.task.contains("x") && action.agent == "y"', 'target: "*"'],
    ['has(budget.max_steps) && budget.steps_used * 2 > budget.max_steps', 'kind: tool'],
    ['tenant == "acme" && supervision.is_root', 'agent: support'],
  ])('accepts the condition %s for %s (SV-3)', (when, match) => {
    expect(problemsOf(ruleWhen(when, match))).toEqual([]);
  });

  it('defines no arguments in a rule that does not match tools (SV-3)', () => {
    const [problem] = problemsOf(ruleWhen('args.amount > 1.0', 'kind: final'));
    expect(problem).toContain('args.amount does not exist; available: none.');
  });

  it.each([
    ['amuont: { value: 1 }', 'argument amuont does not exist; available: amount,'],
    ['amount: { value: "x" }', 'set.amount.value must be a double.'],
    ['note: { fill: 7 }', 'set.note.fill must be a string.'],
    ['amount: { cel: args.note }', 'set.amount.cel must evaluate to double or int, not string.'],
    ['note: { max: 5 }', 'set.note: only a number can have min and max.'],
    ['amount: { max: args.note }', 'set.amount.max must evaluate to int or double, not string.'],
    [
      'amount: { max: 5, value: 3 }',
      'set.amount must have value, fill or cel, or else min, max or both.',
    ],
    ['amount: {}', 'set.amount must have value, fill or cel, or else min, max or both.'],
    ['__proto__: { value: 1 }', 'the name of an argument must match'],
  ])('rejects the adjustment {%s} (SV-3)', (set, problem) => {
    const text = rule(
      `    match: { tool: pay }\n    decide: revise\n    reason: x\n    set: { ${set} }\n`,
    );
    expect(problemsOf(text)).toContainEqual(expect.stringContaining(problem));
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

  it('warns about an unknown tool and an unreachable rule (SV-3)', () => {
    const text = `policy: p
rules:
  - { id: a, match: { tool: pya }, decide: block, reason: no }
  - { id: b, decide: block, reason: no }
  - { id: c, match: { tool: pay }, decide: approve, reason: yes }
`;
    const { warnings } = loadPolicy(text, { file: 'p.yaml', toolSchemas });
    expect(warnings).toEqual([
      {
        file: 'p.yaml',
        line: 3,
        column: 29,
        message: 'rules[0].match.tool: no tool is named pya.',
      },
      {
        file: 'p.yaml',
        line: 5,
        column: 5,
        message: 'rules[2] is never reached: rule b matches every action.',
      },
    ]);
  });
});

describe('a policy with a likely mistake', () => {
  const warningsOf = (text: string) =>
    loadPolicy(text, { file: 'p.yaml', toolSchemas }).warnings.map(
      ({ line, column, message }) => `${line}:${column} ${message}`,
    );
  const rules = (match: string) =>
    `policy: p\nrules:\n  - { id: a, match: ${match}, decide: approve, reason: yes }\n`;

  it.each(['{ tool: pay }', '{ kind: [tool, delegation] }', '{ target: "*" }'])(
    'is warned about when no rule matches an answer: %s (SV-3)',
    (match) => {
      expect(warningsOf(rules(match))).toEqual([
        '3:3 no rule matches a final answer, so every answer is blocked; add a rule with match: { kind: final }.',
      ]);
    },
  );

  it.each(['{ kind: final }', '{ kind: [tool, final] }', '{ agent: support }'])(
    'is not warned about when a rule may match an answer: %s (SV-3)',
    (match) => {
      expect(warningsOf(rules(match))).toEqual([]);
    },
  );

  it('is warned about when a cap names no tool or no argument (SV-3, SV-5)', () => {
    const caps = (cap: string) =>
      warningsOf(`${rules('{ kind: final }')}human: { caps: [{ ${cap}, max: 5 }] }\n`);
    expect(caps('tool: pay, argument: amount')).toEqual([]);
    expect(caps('tool: pya, argument: amount')).toEqual([
      '4:25 human.caps[0].tool: no tool is named pya.',
    ]);
    expect(caps('tool: pay, argument: amuont')).toEqual([
      expect.stringMatching(
        /^4:40 human\.caps\[0\]\.argument: argument amuont does not exist; available: amount, /,
      ),
    ]);
  });

  it('is rejected with one problem for a tab (SYS-3)', () => {
    const text = 'policy: p\nrules:\n\t- id: a\n\t  decide: block\n\t- id: b\n';
    expect(problemsOf(text)).toEqual(['p.yaml:3:1: tabs are not allowed; indent with spaces.']);
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
