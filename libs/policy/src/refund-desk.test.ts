import { readFileSync } from 'node:fs';
import {
  type ContractLookup,
  compileContract,
  type JsonObject,
  type JsonValue,
  Priority,
  trimWhiteSpace,
} from '@writ/kernel';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  applyPending,
  applyReceipt,
  factsWith,
  factValues,
  initialFacts,
  loadPolicy,
  type ProposedAction,
  parsePolicyTable,
  type RuleVerdict,
  resultFieldsFor,
  review,
  reviewToFixpoint,
  runPolicyTable,
} from './index.ts';

const folder = new URL('../../../examples/refund-desk/', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, folder), 'utf8');

const userId = { type: 'integer' };
const toolSchemas: Readonly<Record<string, JsonObject>> = {
  get_refund_context: { type: 'object', properties: { user_id: userId }, required: ['user_id'] },
  issue_refund: {
    type: 'object',
    properties: {
      user_id: userId,
      amount_usd: { type: 'number' },
      reason: { type: 'string', fillable: true },
    },
    required: ['user_id', 'amount_usd', 'reason'],
  },
  send_refund_email: {
    type: 'object',
    properties: { user_id: userId, amount_usd: { type: 'number' }, message: { type: 'string' } },
    required: ['user_id', 'amount_usd', 'message'],
  },
};
const contractOf: ContractLookup = (tool) => {
  const schema = toolSchemas[tool];
  return schema && compileContract(schema);
};
const policy = loadPolicy(read('policy.yaml'), { file: 'policy.yaml', toolSchemas });
const origin = {
  agent: { name: 'refund-worker', instance: 'refund-worker' },
  tenant: 'acme',
  supervision: {
    runId: 'run',
    sessionId: 'session',
    depth: 0,
    priority: Priority.NORMAL,
    retention: 'run',
  },
};

describe('the refund policy as data (SV-4)', () => {
  it('loads without warnings, with and without tool schemas (SV-3)', () => {
    expect(policy.warnings).toEqual([]);
    const alone = loadPolicy(read('policy.yaml'), { file: 'policy.yaml' });
    expect(alone.version).toBe(policy.version);
  });

  const table = parsePolicyTable(read('policy-tests.yaml'), { file: 'policy-tests.yaml' });
  it('has at least sixty situations in its table', () => {
    expect(table.rows.length).toBeGreaterThanOrEqual(60);
  });
  it.each(runPolicyTable(policy, table))('line $line: $name (SV-3, SV-4)', ({ differences }) => {
    expect(differences).toEqual([]);
  });

  it('requests only the result fields that its facts read (SV-3)', () => {
    expect(resultFieldsFor(policy, 'get_refund_context')).toEqual(['error']);
    expect(resultFieldsFor(policy, 'issue_refund')).toEqual(['refund.amount_usd', 'status']);
    expect(resultFieldsFor(policy, 'send_refund_email')).toEqual(['status']);
  });

  it('escalates a revised refund of 2,000 USD (SV-10)', () => {
    const action = { kind: 'tool', name: 'issue_refund', args: { user_id: 42, amount_usd: 9000 } };
    const input = { ...origin, action, facts: initialFacts(policy), contractOf };
    const outcome = reviewToFixpoint(policy, input);
    expect(outcome.passes.map((pass) => pass.decision.verdict)).toEqual([
      'revise',
      'revise',
      'escalate',
    ]);
    expect(outcome.shown.decision.reason).toBe('high_refund_requires_human');
    expect(outcome.action.args).toMatchObject({ amount_usd: 2000, reason: expect.any(String) });
  });

  it('decides the actions of the sequence context, refund, e-mail, answer', () => {
    let facts = initialFacts(policy);
    const reasonFor = (action: ProposedAction) =>
      review(policy, { ...origin, action, facts }).reason;
    const email = { kind: 'tool', name: 'send_refund_email', args: {} };
    const refund = { kind: 'tool', name: 'issue_refund', args: { amount_usd: 1000, reason: 'x' } };
    const final = { kind: 'final', answer: 'Done.' };
    expect(reasonFor(final)).toBe('final_requires_context');

    const look = { callId: 'c1', tool: 'get_refund_context', status: 'succeeded' } as const;
    facts = applyReceipt(policy, facts, { ...look, fields: { error: 'context_not_found' } });
    expect(reasonFor(final)).toBe('final_requires_context');
    facts = applyReceipt(policy, facts, { ...look, callId: 'c2', fields: {} });
    expect(reasonFor(final)).toBe('final_with_context');

    facts = applyPending(policy, facts, 'c3', refund);
    facts = applyPending(policy, facts, 'c4', refund);
    expect(reasonFor(refund)).toBe('refund_budget_exhausted');
    expect(reasonFor(email)).toBe('email_before_refund');
    const paid = { callId: 'c3', tool: 'issue_refund', status: 'succeeded' } as const;
    facts = applyReceipt(policy, facts, {
      ...paid,
      fields: { status: 'ok', 'refund.amount_usd': 999.5 },
    });
    facts = applyReceipt(policy, facts, { ...paid, callId: 'c4', fields: { status: 'error' } });
    expect(factValues(policy, facts).executed_refund_total).toBe(99_950);
    expect(reasonFor(email)).toBe('email_after_refund');
    expect(reasonFor(refund)).toBe('refund_within_auto_limit');
  });
});

interface State {
  readonly has_context: boolean;
  readonly refund_executed: boolean;
  readonly executed_refund_total: number;
}
type Expected = readonly [RuleVerdict, string, JsonObject?];

/** Reference implementation of SV-4. */
function expected(action: ProposedAction, state: State, approved: boolean): Expected {
  if (action.kind === 'final') {
    if (!state.has_context) return ['block', 'final_requires_context'];
    return ['approve', 'final_with_context'];
  }
  if (action.kind !== 'tool') return ['block', 'unknown_action_kind'];
  if (action.name === 'get_refund_context') return ['approve', 'read_only_context'];
  if (action.name === 'send_refund_email') {
    if (!state.refund_executed) return ['block', 'email_before_refund'];
    return ['approve', 'email_after_refund'];
  }
  if (action.name === 'issue_refund') return expectedRefund(action.args ?? {}, state, approved);
  return ['block', `unknown_tool_for_supervisor:${action.name}`];
}

function expectedRefund(args: JsonObject, state: State, approved: boolean): Expected {
  const { amount_usd: amount = 0, reason = '' } = args;
  if (typeof amount !== 'number') return ['block', 'invalid_refund_amount_type'];
  if (amount <= 0) return ['block', 'invalid_refund_amount'];
  const remaining = 200_000 - state.executed_refund_total;
  if (remaining <= 0) return ['block', 'refund_budget_exhausted'];
  const whole = Math.round(amount * 100);
  const cents = whole / 100 >= amount ? whole : whole + 1;
  if (cents > remaining) {
    return ['revise', 'cap_to_remaining_run_budget', { ...args, amount_usd: remaining / 100 }];
  }
  if (reason === null || (typeof reason === 'string' && trimWhiteSpace(reason) === '')) {
    const filled = "The customer asked for this refund and it is within the desk's rules.";
    return ['revise', 'refund_reason_required', { ...args, reason: filled }];
  }
  if (cents <= 100_000) return ['approve', 'refund_within_auto_limit'];
  if (approved) return ['approve', 'approved_by_human'];
  return ['escalate', 'high_refund_requires_human'];
}

/** Reference implementation of SV-10: the rules run again on the revised action. */
function finalDecision(
  action: ProposedAction,
  state: State,
  approved: boolean,
): readonly [RuleVerdict, string, JsonObject | undefined] {
  const [verdict, why, args] = expected(action, state, approved);
  if (verdict !== 'revise') return [verdict, why, action.args];
  return finalDecision({ ...action, args }, state, approved);
}

const amount: fc.Arbitrary<JsonValue> = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: -1_000, max: 300_000 }).map((cents) => cents / 100) },
  { weight: 4, arbitrary: fc.integer({ min: -10, max: 2_500_000 }).map((mills) => mills / 1000) },
  { weight: 2, arbitrary: fc.constantFrom(0, -0, 0.01, 1000, 1000.01, 2000, 2000.01, 1e300) },
  { weight: 2, arbitrary: fc.double({ min: -10, max: 3000, noNaN: true }) },
  { weight: 2, arbitrary: fc.constantFrom<JsonValue>('NaN', '100', '', true, null, [], {}) },
);
const reason: fc.Arbitrary<JsonValue> = fc.constantFrom(
  'late',
  '',
  ' \t\n',
  '\u3000',
  ' x ',
  null,
  7,
);
const refundArgs = fc.record(
  { user_id: fc.constant(42), amount_usd: amount, reason },
  { requiredKeys: ['user_id'] },
);
const action: fc.Arbitrary<ProposedAction> = fc.oneof(
  {
    weight: 8,
    arbitrary: refundArgs.map((args) => ({ kind: 'tool', name: 'issue_refund', args })),
  },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom('get_refund_context', 'send_refund_email', 'drop_table', 'issue_refunds')
      .map((name) => ({ kind: 'tool', name, args: {} })),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'final', answer: 'Done.' }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'delegation', agent: 'other', task: 'x' }) },
);
const state = fc.record({
  has_context: fc.boolean(),
  refund_executed: fc.boolean(),
  executed_refund_total: fc.oneof(
    fc.integer({ min: 0, max: 210_000 }),
    fc.constantFrom(0, 199_999, 200_000),
  ),
});

describe('the refund policy and the same rules as plain code', () => {
  it('agree on 10,000 actions and states, with and without an approval, after one pass and after all passes (SV-4, SV-5, SV-10)', () => {
    const property = fc.property(action, state, fc.boolean(), (proposed, values, approved) => {
      const facts = factsWith(policy, { ...values });
      const decision = review(policy, {
        ...origin,
        action: proposed,
        facts,
        skipEscalation: approved,
      });
      const revised = decision.revisedAction?.args;
      const [verdict, why, args] = expected(proposed, values, approved);
      expect([decision.verdict, decision.reason, revised]).toEqual([verdict, why, args]);
      const outcome = reviewToFixpoint(policy, {
        ...origin,
        action: proposed,
        facts,
        skipEscalation: approved,
      });
      const last = finalDecision(proposed, values, approved);
      const { action: judged } = outcome;
      expect([outcome.verdict, outcome.decision.reason, judged.args]).toEqual(last);
    });
    fc.assert(property, { numRuns: 10_000 });
  });

  it('never let a run exceed its refund limit (SV-4, SV-10)', () => {
    const run = fc.array(refundArgs, { maxLength: 12 });
    const property = fc.property(run, fc.boolean(), (calls, approved) => {
      let facts = initialFacts(policy);
      for (const [index, args] of calls.entries()) {
        const proposed = { kind: 'tool', name: 'issue_refund', args };
        const input = { ...origin, action: proposed, facts, skipEscalation: approved, contractOf };
        const outcome = reviewToFixpoint(policy, input);
        if (outcome.verdict !== 'approve') continue;
        facts = applyPending(policy, facts, `c${index}`, outcome.action);
      }
      expect(factValues(policy, facts).executed_refund_total).toBeLessThanOrEqual(200_000);
    });
    fc.assert(property, { numRuns: 300 });
  });
});
