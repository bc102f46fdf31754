import { describe, expect, it } from 'vitest';
import { problemsOf, rule, ruleWhen } from './policy-document.ts';

describe('loading a rule', () => {
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
    ...['tokens_used', 'turns_used', 'cost_used_nano_usd'].map((name) => [
      `has(budget.${name})`,
      `5:15: rules[0].when: budget.${name} does not exist; available: steps_used,`,
    ]),
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

  it('states that no arguments exist for a tool without arguments or an answer (SYS-3)', () => {
    const problem = 'argument x does not exist; available: none.';
    const answer =
      '    match: { kind: final }\n    decide: escalate\n    reason: x\n    editable: [x]\n';
    for (const text of [revise('x: { value: 1 }', 'ping'), rule(answer)]) {
      expect(problemsOf(text)).toEqual([expect.stringContaining(problem)]);
    }
  });

  const revise = (set: string, tool = 'pay') =>
    rule(`    match: { tool: ${tool} }\n    decide: revise\n    reason: x\n    set: { ${set} }\n`);

  it.each([
    ['amuont: { value: 1 }', 'argument amuont does not exist; available: amount,'],
    ['amount: { value: "x" }', 'set.amount.value must be a double.'],
    ['note: { fill: 7 }', 'set.note.fill must be a string.'],
    ['to: { value: x }', 'set.to.value: only cel can set an argument of type map.'],
    ['tags: { fill: x }', 'set.tags.fill: only cel can set an argument of type list<string>.'],
    ['amount: { cel: args.note }', 'set.amount.cel must evaluate to double or int, not string.'],
    ['note: { max: 5 }', 'set.note: only a number can have min and max.'],
    ['amount: { max: args.note }', 'set.amount.max must evaluate to int or double, not string.'],
    [
      'amount: { max: 5, value: 3 }',
      'set.amount must have value, fill or cel, or else min, max or both.',
    ],
    ['amount: {}', 'set.amount must have value, fill or cel, or else min, max or both.'],
    ['tags: { cel: "[1]" }', 'set.tags.cel must evaluate to list<string>, not list<int>.'],
    ['to: { cel: args.tags }', 'set.to.cel must evaluate to map, not list<string>.'],
    ['__proto__: { value: 1 }', 'the name of an argument must match'],
  ])('rejects the adjustment {%s} (SV-3)', (set, problem) => {
    expect(problemsOf(revise(set))).toContainEqual(expect.stringContaining(problem));
  });

  it.each([
    ['pay', 'tags: { cel: "[]" }'],
    ['pay', 'tags: { cel: "args.tags.filter(tag, tag != args.note)" }'],
    ['pay', 'to: { cel: args.to }'],
    ['pay', 'to: { cel: \'{"iban": args.note}\' }'],
    ['pay', 'any: { cel: args.tags }'],
    ['pay', 'any: { cel: "{}" }'],
    ['label', 'list: { cel: args.list }'],
    ['label', 'list: { cel: "[1, 2]" }'],
    ['label', 'sums: { cel: "[1, 2]" }'],
    ['label', 'parts: { cel: \'[{"size": 1}]\' }'],
  ])('accepts for %s the adjustment {%s}, which computes a list or a map (SV-3)', (tool, set) => {
    expect(problemsOf(revise(set, tool))).toEqual([]);
  });
});
