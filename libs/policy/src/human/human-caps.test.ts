import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  cappedApproval,
  checkHumanDecision,
  editableArguments,
  humanCaps,
  loadPolicy,
  PolicyError,
} from '../index.ts';

const policy = loadPolicy(
  `policy: p
rules: []
human:
  caps:
    - { tool: refund, argument: amount_usd, max_usd: 5000, role: senior }
    - { tool: refund, argument: amount_usd, max_usd: 1200.509, approver: "anna*" }
    - { tool: refund, argument: amount_usd, max_usd: 800 }
    - { tool: order, argument: pieces, max: 12, role: buyer }
`,
  { file: 'p.yaml' },
);

const check = (amount: unknown, name = 'bob', role?: string) =>
  checkHumanDecision(policy, {
    tool: 'refund',
    args: amount === undefined ? {} : { amount_usd: amount as number },
    approver: { name, roles: role === undefined ? [] : [role] },
  });

describe('the cap of an approver', () => {
  it('is the first in the document that matches name and role (SV-5)', () => {
    const max = (name: string, role?: string) =>
      humanCaps(policy, {
        tool: 'refund',
        approver: { name, roles: role === undefined ? [] : [role] },
      }).map((cap) => cap.max);
    expect(max('bob')).toEqual([800]);
    expect(max('anna.k')).toEqual([1200.509]);
    expect(max('anna.k', 'senior')).toEqual([5000]);
    expect(humanCaps(policy, { tool: 'refund' })).toMatchObject([
      { argument: 'amount_usd', max: 800, unit: 'usd' },
    ]);
    expect(humanCaps(policy, { tool: 'mail' })).toEqual([]);
  });

  it('allows an approval with the basis for the audit record (SV-5)', () => {
    expect(check(800)).toEqual({ allowed: true, basis: 'approved_with_cap:800' });
    expect(check(12.5)).toEqual({ allowed: true, basis: 'approved_with_cap:12.5' });
    expect(check(5000, 'eve', 'senior')).toMatchObject({ allowed: true });
    const mail = { tool: 'mail', args: { amount_usd: 9e9 }, approver: { name: 'bob' } };
    expect(checkHumanDecision(policy, mail)).toEqual({
      allowed: true,
      basis: 'approved_by_human',
    });
  });

  it('rejects an argument above the cap and names the cap (SV-5)', () => {
    expect(check(1200)).toEqual({
      allowed: false,
      reason: 'above_human_cap',
      message: "amount_usd 1200 exceeds bob's cap of 800 USD for refund.",
    });
    expect(check(800.000001)).toMatchObject({ reason: 'above_human_cap' });
    expect(check(1200.5, 'anna')).toMatchObject({ allowed: true });
    expect(check(1200.505, 'anna')).toMatchObject({ reason: 'above_human_cap' });
  });

  it.each([
    ['800', 'invalid_requested_amount_type'],
    [null, 'invalid_requested_amount_type'],
    [true, 'invalid_requested_amount_type'],
    [0, 'invalid_requested_amount'],
    [-1, 'invalid_requested_amount'],
    [undefined, 'invalid_requested_amount'],
  ])('rejects the amount %j with %s (SV-5)', (amount, reason) => {
    expect(check(amount)).toMatchObject({ allowed: false, reason });
  });

  it('is required for an argument on which other approvers have a cap (SYS-4)', () => {
    const order = { tool: 'order', args: { pieces: 1 } };
    const by = (role?: string) =>
      checkHumanDecision(policy, {
        ...order,
        approver: { name: 'bob', roles: role === undefined ? [] : [role] },
      });
    expect(by('buyer')).toEqual({ allowed: true, basis: 'approved_with_cap:1' });
    expect(by()).toMatchObject({ reason: 'no_human_cap' });
    const tooMany = {
      tool: 'order',
      args: { pieces: 13 },
      approver: { name: 'b', roles: ['buyer'] },
    };
    expect(checkHumanDecision(policy, tooMany)).toMatchObject({
      message: "pieces 13 exceeds b's cap of 12 for order.",
    });
  });
});

describe('an approver with several roles', () => {
  const order = (roles: readonly string[], pieces = 12) =>
    checkHumanDecision(policy, {
      tool: 'order',
      args: { pieces },
      approver: { name: 'bob', roles },
    });

  it('has the permissions of all its roles and the highest of their caps (SV-5, PE-1)', () => {
    expect(order(['caller', 'buyer', 'admin'])).toEqual({
      allowed: true,
      basis: 'approved_with_cap:12',
    });
    expect(order(['caller', 'buyer'], 13)).toMatchObject({ reason: 'above_human_cap' });
    const refund = (roles: readonly string[]) =>
      humanCaps(policy, { tool: 'refund', approver: { name: 'bob', roles } });
    expect(refund(['caller', 'senior'])).toMatchObject([{ max: 5000 }]);
    expect(refund(['senior', 'caller'])).toMatchObject([{ max: 5000 }]);
  });

  it('is refused with an error that names the missing role (SV-5)', () => {
    expect(order(['caller', 'admin'])).toEqual({
      allowed: false,
      reason: 'no_human_cap',
      message:
        'bob is not permitted to approve order: a cap on pieces requires the role buyer; roles of this approver: caller, admin.',
    });
    expect(order([])).toMatchObject({ message: expect.stringContaining('has no role.') });
  });
});

describe('the precision of a cap in USD', () => {
  it('allows only amounts in whole cents up to the cap (SV-5)', () => {
    expect(check(700.555)).toEqual({
      allowed: false,
      reason: 'invalid_requested_amount',
      message: 'amount_usd must be in whole cents: at most 2 decimal places.',
    });
    const amount = fc.oneof(
      fc.double({ noNaN: true, min: 0, max: 900 }),
      fc.integer({ min: 1, max: 900_000 }).map((mills) => mills / 1000),
    );
    fc.assert(
      fc.property(amount, (value) => {
        if (!check(value).allowed) return;
        const cents = Math.round(value * 100);
        expect(cents / 100).toBe(value);
        expect(cents).toBeLessThanOrEqual(80_000);
      }),
    );
  });
});

describe('the editable arguments', () => {
  const editable = loadPolicy(
    `policy: p
rules:
  - { id: locked, match: { tool: refund }, decide: escalate, reason: r, editable: [] }
  - { id: own, match: { tool: refund }, decide: escalate, reason: r, editable: [reason] }
  - { id: plain, match: { tool: "*" }, decide: escalate, reason: r }
human:
  editable:
    - { tool: mail, arguments: [subject, text] }
    - { tool: "ma*", arguments: [text, cc] }
  caps:
    - { tool: refund, argument: amount_usd, max_usd: 800, role: senior }
    - { tool: mail, argument: copies, max: 3 }
`,
    { file: 'p.yaml' },
  );
  it.each([
    ['refund', 'locked', []],
    ['refund', 'own', ['reason']],
    ['refund', 'plain', ['amount_usd']],
    ['refund', '', ['amount_usd']],
    ['mail', 'plain', ['subject', 'text', 'cc']],
    ['other', 'plain', []],
  ])('of %s, escalated by %s, are %j (SV-5)', (tool, ruleId, expected) => {
    expect(editableArguments(editable, { tool, ruleId })).toEqual(expected);
  });

  it.each([
    [
      'rules: [{ id: a, decide: block, reason: r, editable: [x] }]',
      'is only for rules that escalate or approve.',
    ],
    [
      'rules: [{ id: a, match: { tool: pay }, decide: escalate, reason: r, editable: [y] }]',
      'rules[0].editable[0]: argument y does not exist; available: x.',
    ],
    [
      'rules: []\nhuman: { editable: [{ tool: pay, arguments: [y] }] }',
      'human.editable[0].arguments[0]: argument y does not exist; available: x.',
    ],
    ['rules: []\nhuman: { editable: [{ tool: pay }] }', 'must have the key arguments.'],
  ])('are rejected for the problem in %s (SV-3)', (text, problem) => {
    const toolSchemas = { pay: { type: 'object', properties: { x: { type: 'number' } } } };
    expect(() => loadPolicy(`policy: p\n${text}\n`, { file: 'p.yaml', toolSchemas })).toThrow(
      problem,
    );
  });
});

describe('the evidence for approvers', () => {
  const evidenceOf = (human: string) =>
    loadPolicy(
      `policy: p\nfacts: { a: { kind: gate, initial: false }, b: { kind: gate, initial: 0 } }\nrules: []\nhuman: ${human}\n`,
      { file: 'p.yaml' },
    ).evidence;

  it('is the goal, the history and all facts unless the policy says otherwise (SV-5)', () => {
    const byDefault = { goal: true, history: true, facts: ['a', 'b'], observations: [] };
    expect(evidenceOf('{}')).toEqual(byDefault);
    expect(evidenceOf('{ evidence: {} }')).toEqual(byDefault);
    expect(
      evidenceOf('{ evidence: { goal: false, history: false, facts: [b], observations: ["x*"] } }'),
    ).toEqual({ goal: false, history: false, facts: ['b'], observations: ['x*'] });
    expect(evidenceOf('{ evidence: { facts: false } }').facts).toEqual([]);
  });

  it.each([
    ['{ facts: [c] }', 'human.evidence.facts[0]: fact c does not exist; available: a or b.'],
    ['{ goal: maybe }', 'human.evidence.goal must be true or false.'],
    ['{ results: [x] }', 'unknown key human.evidence.results'],
  ])('is rejected for the problem in %s (SV-3)', (evidence, problem) => {
    expect(() => evidenceOf(`{ evidence: ${evidence} }`)).toThrow(problem);
  });
});

describe('a capped approval', () => {
  const capped = (amount_usd: number | string) =>
    cappedApproval(policy, { tool: 'refund', args: { amount_usd }, approver: { name: 'bob' } });

  it('lowers an amount to the cap and to whole cents (SV-5)', () => {
    expect(capped(1200)).toEqual({
      approved: true,
      args: { amount_usd: 800 },
      basis: 'approved_with_cap:800',
    });
    expect(capped(12.349)).toMatchObject({ args: { amount_usd: 12.34 } });
  });

  it('rejects an invalid amount (SV-5)', () => {
    expect(capped('800')).toEqual({ approved: false, basis: 'invalid_requested_amount_type' });
    expect(capped(-3)).toEqual({ approved: false, basis: 'invalid_requested_amount' });
    expect(capped(0.004)).toEqual({ approved: false, basis: 'invalid_requested_amount' });
  });

  it('leaves the arguments of a tool without caps unchanged (SV-5)', () => {
    const mail = { tool: 'mail', args: { to: 'x' }, approver: { name: 'bob' } };
    expect(cappedApproval(policy, mail)).toEqual({
      approved: true,
      args: { to: 'x' },
      basis: 'approved_by_human',
    });
  });
});

describe('a document with caps', () => {
  it.each([
    ['{ tool: a, argument: b }', 'human.caps[0] must have either max or max_usd.'],
    ['{ tool: a, argument: b, max: 1, max_usd: 1 }', 'must have either max or max_usd.'],
    ['{ tool: a, argument: b, max: -1 }', 'human.caps[0].max must not be negative.'],
    ['{ tool: a, argument: b, max: x }', 'human.caps[0].max must be a number, not "x".'],
    ['{ tool: a, max: 1 }', 'human.caps[0] must have the key argument.'],
    [
      '{ tool: a, argument: __proto__, max: 1 }',
      'human.caps[0].argument must be a name that matches',
    ],
    ['{ tool: a, argument: b, max: 1, who: c }', 'unknown key human.caps[0].who; expected tool,'],
  ])('is rejected for the cap %s (SV-3)', (cap, problem) => {
    const text = `policy: p\nrules: []\nhuman: { caps: [${cap}] }\n`;
    const load = () => loadPolicy(text, { file: 'p.yaml' });
    expect(load).toThrow(PolicyError);
    expect(load).toThrow(problem);
  });
});
