import { describe, expect, it } from 'vitest';
import {
  cappedApproval,
  checkHumanDecision,
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
    approver: { name, role },
  });

describe('the cap of an approver', () => {
  it('is the first in the document that matches name and role (SV-5)', () => {
    const max = (name: string, role?: string) =>
      humanCaps(policy, { tool: 'refund', approver: { name, role } }).map((cap) => cap.max);
    expect(max('bob')).toEqual([800]);
    expect(max('anna.k')).toEqual([1200.509]);
    expect(max('anna.k', 'senior')).toEqual([5000]);
    expect(humanCaps(policy, { tool: 'refund' })).toMatchObject([
      { argument: 'amount_usd', max: 800, unit: 'usd' },
    ]);
    expect(humanCaps(policy, { tool: 'mail' })).toEqual([]);
  });

  it('allows an approval with the comment for the audit record (SV-5)', () => {
    expect(check(800)).toEqual({ allowed: true, comment: 'approved_with_cap:800' });
    expect(check(12.5)).toEqual({ allowed: true, comment: 'approved_with_cap:12.5' });
    expect(check(5000, 'eve', 'senior')).toMatchObject({ allowed: true });
    const mail = { tool: 'mail', args: { amount_usd: 9e9 }, approver: { name: 'bob' } };
    expect(checkHumanDecision(policy, mail)).toEqual({
      allowed: true,
      comment: 'approved_by_human',
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

  it('is required where other approvers have one (SYS-4)', () => {
    const order = { tool: 'order', args: { pieces: 1 } };
    const by = (role?: string) =>
      checkHumanDecision(policy, { ...order, approver: { name: 'bob', role } });
    expect(by('buyer')).toEqual({ allowed: true, comment: 'approved_with_cap:1' });
    expect(by()).toMatchObject({ reason: 'no_human_cap' });
    const tooMany = { tool: 'order', args: { pieces: 13 }, approver: { name: 'b', role: 'buyer' } };
    expect(checkHumanDecision(policy, tooMany)).toMatchObject({
      message: "pieces 13 exceeds b's cap of 12 for order.",
    });
  });
});

describe('a capped approval', () => {
  const capped = (amount_usd: number | string) =>
    cappedApproval(policy, { tool: 'refund', args: { amount_usd }, approver: { name: 'bob' } });

  it('lowers an amount to the cap and to whole cents (SV-5)', () => {
    expect(capped(1200)).toEqual({
      approved: true,
      args: { amount_usd: 800 },
      comment: 'approved_with_cap:800',
    });
    expect(capped(12.349)).toMatchObject({ args: { amount_usd: 12.34 } });
  });

  it('rejects an invalid amount (SV-5)', () => {
    expect(capped('800')).toEqual({ approved: false, comment: 'invalid_requested_amount_type' });
    expect(capped(-3)).toEqual({ approved: false, comment: 'invalid_requested_amount' });
    expect(capped(0.004)).toEqual({ approved: false, comment: 'invalid_requested_amount' });
  });

  it('leaves the arguments of a tool without caps unchanged (SV-5)', () => {
    const mail = { tool: 'mail', args: { to: 'x' }, approver: { name: 'bob' } };
    expect(cappedApproval(policy, mail)).toEqual({
      approved: true,
      args: { to: 'x' },
      comment: 'approved_by_human',
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
