import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { call, decide, input, policyOf, short } from '../../test/reviews.ts';
import { explainDecision } from '../index.ts';

describe('a review', () => {
  it('is decided by the first matching rule and explains why earlier rules did not match (SV-3)', () => {
    const policy = policyOf(`
  - { id: other, match: { tool: mail }, decide: block, reason: no }
  - { id: big, match: { tool: pay }, when: args.amount > 5.0, decide: block, reason: big, risk: 9 }
  - { id: pay, match: { tool: pay }, decide: approve, reason: fine, risk: 3 }
  - { id: rest, decide: block, reason: rest }
`);
    const decision = decide(policy, call('pay', { amount: 5 }));
    expect(decision).toMatchObject({
      verdict: 'approve',
      reason: 'fine',
      ruleId: 'pay',
      risk: 3,
      policyVersion: policy.version,
      why: [
        { ruleId: 'other', line: 4, outcome: 'no_match', detail: 'tool is pay' },
        { ruleId: 'big', outcome: 'condition_false', detail: 'not true: args.amount > 5.0' },
        { ruleId: 'pay', outcome: 'decided', detail: 'no condition' },
      ],
    });
    expect(explainDecision(policy, decision)).toEqual([
      'p.yaml:4 other: no match (tool is pay)',
      'p.yaml:5 big: condition false (not true: args.amount > 5.0)',
      'p.yaml:6 pay: decided (no condition)',
      `approve: fine (risk 3, policy ${policy.version.slice(0, 12)})`,
    ]);
  });

  it('blocks an action that no rule matches (SV-1)', () => {
    const policy = policyOf('  - { id: a, match: { tool: pay }, decide: approve, reason: ok }\n');
    for (const action of [
      call('mail'),
      { kind: 'final', answer: 'x' },
      { kind: 'odd' },
      call(''),
    ]) {
      expect(decide(policy, action)).toMatchObject({
        verdict: 'block',
        reason: 'no_rule_matched',
        ruleId: undefined,
      });
    }
  });

  it.each([
    ['{ tool: "p*" }', true],
    ['{ tool: [mail, pay] }', true],
    ['{ tool: mail }', false],
    ['{ kind: tool }', true],
    ['{ kind: [final, delegation] }', false],
    ['{ agent: support }', true],
    ['{ agent: "s*t" }', true],
    ['{ agent: support-1 }', false],
    ['{ tenant: acme }', true],
    ['{ tenant: other }', false],
    ['{ priority: NORMAL }', true],
    ['{ priority: [HIGH, CRITICAL] }', false],
    ['{ target: "*" }', false],
    ['{ tool: pay, agent: support, tenant: acme, priority: NORMAL, kind: tool }', true],
    ['{ tool: pay, agent: support, tenant: other }', false],
  ])('matches on %s: %s (SV-3)', (match, fits) => {
    const policy = policyOf(`  - { id: a, match: ${match}, decide: approve, reason: ok }\n`);
    expect(decide(policy, call('pay')).verdict).toBe(fits ? 'approve' : 'block');
  });

  it('matches a delegation by its target and a final by its kind (SV-1)', () => {
    const policy = policyOf(`
  - { id: d, match: { target: "research*" }, when: 'action.task != ""', decide: approve, reason: "to:{target}" }
  - { id: f, match: { kind: final }, when: 'action.answer.contains("x")', decide: approve, reason: "by:{agent}" }
`);
    const delegation = { kind: 'delegation', agent: 'researcher', task: 'look' };
    expect(short(policy, delegation)).toBe('approve to:researcher');
    expect(short(policy, { ...delegation, agent: 'payer' })).toBe('block no_rule_matched');
    expect(short(policy, { kind: 'final', answer: 'xyz' })).toBe('approve by:support');
  });

  it.each([
    'priority == NORMAL && priority < HIGH && supervision.priority == 2',
    'supervision.depth == 1 && agent.depth == 1 && !supervision.is_root',
    'supervision.parent == "boss" && supervision.run_id == "run-1"',
    'supervision.session_id == "session-1" && supervision.retention == "run"',
    'agent.name == "support" && agent.instance == "support-1" && tenant == "acme"',
    'action.kind == "tool" && action.tool == "pay"',
    'budget.steps_used == 3 && !has(budget.max_tokens) && budget.max_cost_nano_usd > 5',
    'facts.open == false && facts.total == 0 && facts.name == "none"',
    'limits.tier == "gold" && "a" in limits.list && limits.usd == 1050',
    'cents(1.005) == 101 && cents_down(1.005) == 100 && cents(3) == 300 && usd(1050) == 10.5',
    'is_text(args.note) && !is_number(args.note) && !blank(args.note)',
    'args.deep.list[1] == "b" && args.deep["odd key"] == 1.0',
  ])('provides rules with: %s (SV-3)', (when) => {
    const policy = policyOf(
      `  - { id: a, match: { tool: pay }, when: ${JSON.stringify(when)}, decide: approve, reason: ok }\n`,
      `limits: { tier: gold, list: [a, b], usd: { usd: 10.5 } }
facts:
  open: { kind: gate, initial: false }
  total: { kind: cap, initial: 0 }
  name: { kind: gate, initial: none }
`,
    );
    const supervision = {
      ...input(policy, call('pay')).supervision,
      depth: 1,
      parentId: { name: 'boss', instance: 'boss-1' },
    };
    const budget = { steps_used: 3, max_tokens: undefined, max_cost_nano_usd: 7n };
    const args = { note: 'x', deep: { list: ['a', 'b'], 'odd key': 1 } };
    expect(short(policy, call('pay', args), { supervision, budget })).toBe('approve ok');
  });

  it.each([
    ['a missing argument', 'args.amount > 1.0', {}],
    ['an argument of another type', 'args.amount > 1.0', { amount: 'x' }],
    ['a result that is not a boolean', 'args.amount', { amount: 'x' }],
    ['a missing limit of the budget', 'budget.max_steps > 1', {}],
    ['a field of an absent object', 'has(args.a.b)', {}],
    ['a division by zero', '1 / int(args.amount) > 0', { amount: 0 }],
    ['a name that every object has in JavaScript', 'args.constructor == "x"', {}],
  ])('blocks at the rule that fails on %s (SYS-4)', (_, when, args) => {
    const policy = policyOf(`
  - { id: odd, match: { tool: pay }, when: ${when}, decide: approve, reason: ok }
  - { id: rest, decide: approve, reason: rest }
`);
    expect(decide(policy, call('pay', args))).toMatchObject({
      verdict: 'block',
      reason: 'policy_error:odd',
      ruleId: 'odd',
      why: [{ outcome: 'failed' }],
    });
  });

  it('skips only escalate rules after an approval by a human (SV-5)', () => {
    const policy = policyOf(`
  - { id: ask, match: { tool: pay }, when: args.amount > 5.0, decide: escalate, reason: ask }
  - { id: cap, match: { tool: pay }, when: args.amount > 9.0, decide: block, reason: cap }
  - { id: ok, match: { tool: pay }, decide: approve, reason: ok }
`);
    const yes = { skipEscalation: true };
    expect(short(policy, call('pay', { amount: 7 }))).toBe('escalate ask');
    expect(short(policy, call('pay', { amount: 7 }), yes)).toBe('approve ok');
    expect(short(policy, call('pay', { amount: 10 }), yes)).toBe('block cap');
    expect(decide(policy, call('pay', { amount: 7 }), yes).why[0]?.outcome).toBe(
      'escalation_skipped',
    );
  });

  it('escalates an approval at or above approval_required_risk (AG, SV-5)', () => {
    const policy = policyOf(`
  - { id: block, match: { tool: no }, decide: block, reason: no, risk: 90 }
  - { id: any, decide: approve, reason: ok, risk: 30 }
`);
    expect(short(policy, call('x'), { approvalRequiredRisk: 31 })).toBe('approve ok');
    expect(short(policy, call('x'), { approvalRequiredRisk: 30 })).toBe(
      'escalate risk_requires_approval',
    );
    expect(decide(policy, call('x'), { approvalRequiredRisk: 50, toolRisk: 60 })).toMatchObject({
      verdict: 'escalate',
      risk: 60,
      ruleId: 'any',
    });
    expect(short(policy, call('no'), { approvalRequiredRisk: 1 })).toBe('block no');
    const yes = { approvalRequiredRisk: 1, skipEscalation: true };
    expect(short(policy, call('x'), yes)).toBe('approve ok');
    const final = { kind: 'final', answer: 'x' };
    expect(short(policy, final, { approvalRequiredRisk: 50, toolRisk: 60 })).toBe('approve ok');
  });

  it('returns the counts of an approval, and blocks an action without a computable count (SV-3, SYS-4)', () => {
    const policy = policyOf(
      '  - { id: a, decide: approve, reason: ok }\n',
      'facts: { sum: { kind: cap, type: cents, initial: 0, updates: [{ tool: pay, count: cents(args.amount), add: cents(result.paid) }] } }\n',
    );
    expect(decide(policy, call('pay', { amount: 1.001 }))).toMatchObject({
      verdict: 'approve',
      counts: { sum: 101 },
      resultFields: ['error', 'paid', 'status'],
    });
    for (const args of [{}, { amount: '1' }, { amount: -1 }]) {
      expect(short(policy, call('pay', args))).toBe('block policy_error:facts.sum');
    }
    expect(decide(policy, call('mail'))).toMatchObject({
      counts: {},
      resultFields: ['error', 'status'],
    });
  });

  it('returns the same decision for the same input and does not modify the input (SV-3)', () => {
    const policy = policyOf(`
  - { id: r, match: { tool: pay }, when: args.n > 1.0, decide: revise, reason: r, set: { n: { max: 1 } } }
`);
    const args = Object.freeze({ n: 5 });
    const frozen = Object.freeze(call('pay', args));
    expect(decide(policy, frozen)).toEqual(decide(policy, frozen));
    expect(args).toEqual({ n: 5 });
  });
});

/** An expression that doubles a value 20 times. */
function doubled(value: string, step = 'x + x') {
  return `${'cel.bind(x, '.repeat(20)}${value}${`, ${step})`.repeat(20)}`;
}

describe('the cost of a review is bounded (BD-1)', () => {
  const policy = policyOf(`
  - { id: pairs, match: { tool: pay }, when: "args.items.all(a, args.items.exists(b, b == a))", decide: approve, reason: fine }
  - { id: each, match: { tool: mail }, when: "args.items.filter(a, a > 1.0).all(a, a > 0.0)", decide: approve, reason: fine }
  - { id: text, match: { tool: note }, when: "args.text.matches(args.pattern)", decide: approve, reason: fine }
`);
  const items = (count: number) => Array.from({ length: count }, (_, n) => n);

  it('by blocking an action whose rule would loop over too many items', () => {
    expect(short(policy, call('pay', { items: items(900) }))).toBe('approve fine');
    expect(short(policy, call('pay', { items: items(4_000) }))).toMatch(/^block/);
    expect(short(policy, call('mail', { items: items(30_000) }))).toBe('approve fine');
  });

  it.each([
    ['a split text', 'args.text.split("").all(a, args.text.split("").exists(b, b == a))'],
    ['a split text in `in`', 'args.items.all(a, !("x" in args.text.split("")))'],
    ['a split text in an index', 'args.items.all(a, args.text.split("")[0] == "a")'],
    ['a split text with a limit', 'args.items.all(a, args.text.split("", 2)[0] == "a")'],
    ['a joined text', 'args.items.map(a, args.text).join("").split("").all(a, a != "x")'],
    [
      'a joined text that is not split',
      'args.items.map(a, args.items.map(b, "a").join(args.text)).size() > 0',
    ],
    ['lists that are concatenated repeatedly', `${doubled('args.items')}.all(x, x >= 0.0)`],
    ['texts that are concatenated repeatedly', `${doubled('args.text')}.contains("x")`],
    [
      'concatenated texts in a loop',
      'args.items.all(a, args.items.exists(b, args.text + "x" != args.text))',
    ],
    ['compared lists', 'args.items.all(a, args.items + [a] != args.items + [-1.0])'],
    [
      'compared lists that share their items',
      `${doubled('[args.items]', '[x, x]')} == ${doubled('[args.items]', '[x, x]')}`,
    ],
    ['compared objects', 'args.items.all(a, args.map == args.copy)'],
    ['objects in a list', 'args.items.all(a, args.map in [args.copy])'],
    ['keys of an object', 'args.items.all(a, !("x" in args.map))'],
    [
      'parsed JSON',
      'bytes("[" + args.items.map(a, "1").join(",") + "]").json().all(a, args.items.all(b, true))',
    ],
    ['a long text that is searched', 'args.text.contains(args.needle)'],
    ['a long text that is searched backwards', 'args.text.lastIndexOf(args.needle) < 0'],
    ['texts searched in a loop', 'args.items.all(a, !args.text.contains("xyz"))'],
    ['patterns in a loop', 'args.items.all(a, args.items.all(b, !args.text.matches("(a|b)*x")))'],
    ['converted texts in a loop', 'args.items.all(a, args.items.all(b, size(args.text) > 0))'],
    ['a long duration', 'duration(args.text) < duration("1h")'],
    ['time zones in a loop', 'args.items.all(a, timestamp(0).getHours("Europe/Berlin") >= 0)'],
    ['a loop that ignores errors', 'args.items.exists(a, a.x == 1) || true'],
    ['an error in a loop that `||` ignores', 'args.items.map(a, a.x == 1 || true).size() > 0'],
    ['a limit that `||` ignores', 'args.items.exists(a, args.items.all(b, b > a)) || true'],
    [
      'a limit that `exists` ignores',
      'args.items.exists(a, a < 100.0 ? args.items.all(b, b < 0.0) : true)',
    ],
  ])('by blocking an action whose rule would take too many passes because of %s', (_, when) => {
    const rules = `  - { id: costly, when: ${JSON.stringify(when)}, decide: approve, reason: fine }\n`;
    const map = Object.fromEntries(items(1_000).map((n) => [`k${n}`, n]));
    const text = 'a'.repeat(100_000);
    const needle = `${'a'.repeat(10_000)}b${'a'.repeat(10_000)}`;
    const args = { text, needle, items: items(20_000), map, copy: { ...map } };
    expect(short(policyOf(rules), call('x', args))).toBe('block policy_error:costly');
  });

  it('by counting the passes over the parts of texts', () => {
    const rules =
      '  - { id: parts, when: \'args.a.split(",").all(a, args.b.split(",").all(b, true))\', decide: approve, reason: fine }\n';
    const parts = policyOf(rules);
    const count = fc.oneof(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1, max: 20_000 }));
    const property = fc.property(count, count, (outer, inner) => {
      const args = { a: 'x,'.repeat(outer - 1), b: 'y,'.repeat(inner - 1) };
      const passes = outer + outer * inner;
      const verdict = short(parts, call('x', args));
      if (passes > 1_000_000) expect(verdict).toBe('block policy_error:parts');
      if (passes < 300_000) expect(verdict).toBe('approve fine');
    });
    fc.assert(property, { numRuns: 20 });
  });

  it.each([
    [
      'lines of a long answer',
      'args.text.split("\\n").exists(l, limits.banned.exists(w, l.contains(w)))',
    ],
    ['words in a long text', 'limits.banned.exists(w, args.text.contains(w))'],
    ['addresses', 'args.to.split(",").all(a, args.allowed.split(",").exists(b, a == b))'],
    ['joined names', 'args.names.map(n, n.trim() + ";").join("").contains("name")'],
    [
      'a time',
      'duration(args.wait) < duration("2h30m15.5s") && timestamp(0).getHours("Europe/Berlin") == 1',
    ],
  ])('without blocking usual rules: %s', (_, when) => {
    const rules = `  - { id: usual, when: ${JSON.stringify(when)}, decide: approve, reason: fine }\n`;
    const names = items(200).map((n) => `name ${n}`);
    const text = `${'This is one of the lines of the text.\n'.repeat(5_000)}word 19`;
    const args = { text, to: names.join(), allowed: names.join(), names, wait: '1h5m' };
    const banned = items(20).map((n) => `word ${n}`);
    const head = `limits: { banned: ${JSON.stringify(banned)} }\n`;
    expect(short(policyOf(rules, head), call('x', args))).toBe('approve fine');
  });

  it('by matching patterns in linear time and blocking an action with an unsupported pattern', () => {
    const text = 'a'.repeat(50_000);
    expect(short(policy, call('note', { text, pattern: '^(a+)+$' }))).toBe('approve fine');
    expect(short(policy, call('note', { text: `${text}!`, pattern: '^(a+)+$' }))).toMatch(/^block/);
    expect(short(policy, call('note', { text, pattern: '(a)\\1' }))).toMatch(/^block/);
    expect(short(policy, call('note', { text, pattern: 'a{900}b?c?' }))).toBe('approve fine');
    const long = `${text}${text}`;
    expect(short(policy, call('note', { text: long, pattern: 'a{900}' }))).toMatch(/^block/);
  });
});
