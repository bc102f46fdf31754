import { describe, expect, it } from 'vitest';
import { factsWith, loadPolicy, PolicyError, parsePolicyTable, runPolicyTable } from '../index.ts';

const policy = loadPolicy(
  `policy: p
facts:
  open: { kind: gate, initial: false }
  sum: { kind: cap, initial: 0 }
rules:
  - { id: cut, match: { tool: pay }, when: args.n > 5.0, decide: revise, reason: cut, set: { n: { max: 5 } } }
  - { id: pay, match: { tool: pay, agent: support }, when: facts.open, decide: approve, reason: ok, risk: 7 }
  - { id: low, match: { priority: LOW }, when: supervision.depth > 0, decide: block, reason: low }
human: { caps: [{ tool: pay, argument: n, max: 5 }] }
`,
  { file: 'p.yaml' },
);

const run = (rows: string) => runPolicyTable(policy, parsePolicyTable(rows, { file: 't.yaml' }));

describe('a policy table', () => {
  it('passes when every row matches the policy (SV-3)', () => {
    const results = run(`rows:
  - name: cut, then paid
    facts: { open: true }
    action: { tool: pay, args: { n: 9 } }
    agent: support
    expect: { decision: revise, reason: cut, rule: cut, risk: 0, args: { n: 5 } }
    finally: { decision: approve, reason: ok, risk: 7, args: { n: 5 } }
  - name: another agent of low priority below the root
    action: { tool: pay, args: { n: 1 } }
    priority: LOW
    depth: 1
    expect: { decision: block, reason: low }
human:
  - { name: as much as the cap, tool: pay, args: { n: 5 }, basis: "approved_with_cap:5" }
  - { name: more, tool: pay, args: { n: 6 }, refused: above_human_cap }
`);
    expect(results.map(({ name, line, passed }) => [name, line, passed])).toEqual([
      ['cut, then paid', 2, true],
      ['another agent of low priority below the root', 8, true],
      ['as much as the cap', 14, true],
      ['more', 15, true],
    ]);
  });

  it('compares the facts after the approval and after the receipt (SV-3)', () => {
    const counting = loadPolicy(
      `policy: p
facts:
  open: { kind: gate, initial: false, updates: [{ tool: pay, set: result.ok }] }
  sum: { kind: cap, initial: 1, updates: [{ tool: pay, count: int(args.n) }] }
rules: [{ id: pay, match: { tool: pay }, decide: approve, reason: ok }]
human: { four_eyes: [pay] }
`,
      { file: 'p.yaml' },
    );
    const table = `rows:
  - { name: counts, action: { tool: pay, args: { n: 5 } }, after: { sum: 6, open: false } }
  - { name: opens, action: { tool: pay, args: { n: 5 } }, receipt: { status: succeeded, fields: { ok: true } }, after: { sum: 6, open: true } }
  - { name: wrong, action: { tool: pay, args: { n: 5 } }, receipt: { status: refused }, after: { sum: 6 } }
human:
  - { name: own, tool: pay, args: {}, started_run: true, refused: four_eyes }
  - { name: other, tool: pay, args: {}, basis: approved_by_human }
`;
    const results = runPolicyTable(counting, parsePolicyTable(table, { file: 't.yaml' }));
    expect(results.flatMap(({ differences }) => differences)).toEqual([
      'afterwards facts.sum is 1, expected 6.',
    ]);
  });

  it('sets the budget, whose counters are otherwise 0 and whose limits are otherwise absent (SV-3)', () => {
    const budgeted = loadPolicy(
      `policy: p
rules:
  - { id: late, match: { tool: pay }, when: budget.steps_used >= 3 || budget.active_ms > 5000, decide: block, reason: late }
  - { id: dear, match: { tool: pay }, when: has(budget.max_cost_nano_usd) && budget.tool_calls_used > 0, decide: escalate, reason: dear }
  - { id: pay, match: { tool: pay }, decide: approve, reason: ok }
`,
      { file: 'p.yaml' },
    );
    const results = runPolicyTable(
      budgeted,
      parsePolicyTable(
        `rows:
  - { name: fresh, action: { tool: pay }, expect: { decision: approve, rule: pay } }
  - { name: third step, action: { tool: pay }, budget: { steps_used: 3 }, expect: { decision: block, rule: late } }
  - { name: limited, action: { tool: pay }, budget: { tool_calls_used: 1, max_cost_nano_usd: 9000000000000 }, expect: { decision: escalate, rule: dear } }
`,
        { file: 't.yaml' },
      ),
    );
    expect(results.flatMap(({ differences }) => differences)).toEqual([]);
  });

  it('reports every difference (SV-3)', () => {
    const results = run(`rows:
  - name: wrong in every way
    facts: { open: 1, closed: true }
    action: { tool: pay, args: { n: 9 } }
    expect: { decision: approve, reason: ok, rule: pay, risk: 1, args: { n: 9 } }
    finally: { decision: approve }
human:
  - { name: more, tool: pay, args: { n: 6 }, basis: "approved_with_cap:6" }
`);
    expect(results.flatMap(({ differences }) => differences)).toEqual([
      'facts.open does not exist, or its value has another type.',
      'facts.closed does not exist, or its value has another type.',
      'decision is revise, expected approve.',
      'reason is cut, expected ok.',
      'rule is cut, expected pay.',
      'risk is 0, expected 1.',
      'args are {"n":5}, expected {"n":9}.',
      'finally decision is block, expected approve.',
      'is refused as above_human_cap, expected allowed as approved_with_cap:6.',
    ]);
    expect(results.every(({ passed }) => !passed)).toBe(true);
  });

  it.each([
    ['rows: {}', 't.yaml:1:7: rows must be a list, not a mapping.'],
    [
      'rows: [{ name: a, action: { tool: x } }]',
      't.yaml:1:8: rows[0] must have expect, finally or after.',
    ],
    [
      'rows: [{ name: a, action: {}, expect: { decision: block } }]',
      't.yaml:1:27: rows[0].action must have kind, tool, answer or agent.',
    ],
    [
      'rows: [{ name: a, action: { tool: x }, expect: { decision: no } }]',
      't.yaml:1:60: rows[0].expect.decision must be one of',
    ],
    [
      'rows: [{ name: a, action: { tool: x }, expects: {} }]',
      't.yaml:1:40: unknown key rows[0].expects; expected name,',
    ],
    [
      'rows: [{ name: a, action: { tool: x }, approved_by_human: 1, expect: { decision: block } }]',
      'rows[0].approved_by_human must be true or false.',
    ],
    [
      'rows: [{ name: a, action: { tool: x }, budget: { steps: 1 }, expect: { decision: block } }]',
      'unknown key rows[0].budget.steps; expected steps_used,',
    ],
    [
      'rows: []\nhuman: [{ name: a, tool: x, args: {} }]',
      't.yaml:2:9: human[0] must have either basis or refused.',
    ],
    [
      'rows: [{ name: a, facts: &f {}, action: { tool: x, args: *f }, expect: { decision: block } }]',
      'aliases are not supported',
    ],
  ])('is rejected for the problem in %s (SV-3)', (text, problem) => {
    const parse = () => parsePolicyTable(text, { file: 't.yaml' });
    expect(parse).toThrow(PolicyError);
    expect(parse).toThrow(problem);
  });
});

describe('facts with given values', () => {
  it('set declared facts, and ignore values of another type and undeclared names (SV-3)', () => {
    expect(factsWith(policy, { open: true, sum: 'x', other: 1 }).base).toEqual({
      open: true,
      sum: 0,
    });
  });
});
