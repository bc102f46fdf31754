import { readFileSync } from 'node:fs';
import { compileContract, Priority } from '@writ/kernel';
import { applyPending, type Facts, initialFacts, loadPolicy } from '@writ/policy';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Receipt } from '../facts/receipt.ts';
import { settleReceipt } from '../facts/settle-receipt.ts';
import type { RecordedAction } from '../result/recorded-action.ts';
import { judge, type Situation } from './judge.ts';

const file = new URL('../../../../../examples/refund-desk/policy.yaml', import.meta.url);
const policy = loadPolicy(readFileSync(file, 'utf8'), { file: 'policy.yaml' });
const LIMIT = 200_000;

const tool = {
  name: 'issue_refund',
  definitionDigest: 'digest',
  risk: 70,
  hasEffect: true,
  contract: compileContract({
    type: 'object',
    properties: {
      user_id: { type: 'integer' },
      amount_usd: { type: 'number' },
      reason: { type: 'string', fillable: true },
    },
    required: ['user_id', 'amount_usd', 'reason'],
  }),
};

function situation(facts: Facts): Situation {
  return {
    facts,
    agent: { name: 'worker', instance: 'worker-1' },
    tenant: 'acme',
    supervision: {
      runId: 'run-1',
      sessionId: 'run-1',
      depth: 0,
      priority: Priority.NORMAL,
      retention: 'permanent',
    },
  };
}

function receiptOf(callId: string, status: Receipt['status'], paidUsd: number): Receipt {
  return {
    id: `rcpt-${callId}`,
    tenant: 'acme',
    runId: 'run-1',
    instance: 'worker-1',
    callId,
    revision: 1,
    tool: tool.name,
    writId: 'writ-1',
    status,
    stopReason: '',
    resultSha256: '',
    argsSha256: '',
    definitionDigest: '',
    registryVersion: '',
    fields: { status: 'ok', 'refund.amount_usd': paidUsd },
    step: 1,
    startedAt: undefined,
    endedAt: undefined,
    resolvedBy: '',
    claimsJson: '{}',
  };
}

const step = fc.record({
  cents: fc.integer({ min: 1, max: 150_000 }),
  hasReason: fc.boolean(),
  /** The status of the receipt of the call, and whether the worker sends the receipt. */
  status: fc.constantFrom<Receipt['status'][]>('ok', 'error', 'refused', 'unknown', 'void'),
  isReported: fc.boolean(),
});

describe('judge', () => {
  it('never approves payments above the run’s limit when the worker withholds any receipts (SV-3)', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        let facts = initialFacts(policy);
        let paid = 0;
        for (const [index, { cents, hasReason, status, isReported }] of steps.entries()) {
          const args = {
            user_id: 1,
            amount_usd: cents / 100,
            ...(hasReason && { reason: 'Why.' }),
          };
          const action: RecordedAction = { kind: 'tool', name: tool.name, args };
          const { next } = judge(policy, action, tool, situation(facts));
          if (next.kind !== 'go' || next.action.kind !== 'tool') continue;
          const callId = `op-${index}`;
          facts = applyPending(policy, facts, `worker-1/${callId}`, next.action);
          const amount = Number(next.action.args.amount_usd);
          if (status === 'ok' || status === 'unknown') paid += Math.round(amount * 100);
          if (isReported) facts = settleReceipt(policy, facts, receiptOf(callId, status, amount));
        }
        expect(paid).toBeLessThanOrEqual(LIMIT);
      }),
      { numRuns: 200 },
    );
  });

  it('rejects a fillable argument that is still missing at execution (TG-3)', () => {
    const open = loadPolicy('policy: open\nrules: [{ id: all, decide: approve, reason: fine }]', {
      file: 'open.yaml',
    });
    const action = { kind: 'tool', name: tool.name, args: { user_id: 1, amount_usd: 5 } } as const;
    expect(judge(open, action, tool, situation(initialFacts(open)))).toMatchObject({
      verdict: 'invalid',
      next: { kind: 'stop', stopReason: 'invalid_action:missing_required_arg:issue_refund:reason' },
    });
  });

  it('never approves an amount that the tool would have to round, revised or not (SV-5, TG-3)', () => {
    const precise = {
      ...tool,
      contract: compileContract({
        type: 'object',
        properties: { amount_usd: { type: 'number', decimals: 2 } },
      }),
    };
    const share = loadPolicy(
      `policy: share
rules:
  - id: share
    match: { tool: issue_refund }
    when: args.amount_usd > 100.0
    decide: revise
    set: { amount_usd: { cel: args.amount_usd / 3.0 } }
    reason: share
  - { id: all, decide: approve, reason: fine }
`,
      { file: 'share.yaml' },
    );
    let approved = 0;
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500_000 }), (mills) => {
        const action = {
          kind: 'tool',
          name: tool.name,
          args: { amount_usd: mills / 1000 },
        } as const;
        const { next } = judge(share, action, precise, situation(initialFacts(share)));
        if (next.kind !== 'go' || next.action.kind !== 'tool') return;
        approved += 1;
        const amount = Number(next.action.args.amount_usd);
        expect(Math.round(amount * 100) / 100).toBe(amount);
      }),
      { numRuns: 500 },
    );
    expect(approved).toBeGreaterThan(0);
    const third = { kind: 'tool', name: tool.name, args: { amount_usd: 200 } } as const;
    expect(judge(share, third, precise, situation(initialFacts(share))).next).toMatchObject({
      stopReason: 'supervisor_block:invalid_revision:share',
    });
  });

  it('blocks after too many revisions (SV-10)', () => {
    const endless = loadPolicy(
      'policy: endless\nrules: [{ id: more, decide: revise, reason: more, match: { tool: issue_refund }, set: { amount_usd: { cel: "args.amount_usd + 1.0" } } }]',
      { file: 'endless.yaml' },
    );
    const action = {
      kind: 'tool',
      name: tool.name,
      args: { user_id: 1, amount_usd: 5, reason: 'x' },
    } as const;
    expect(judge(endless, action, tool, situation(initialFacts(endless)))).toMatchObject({
      verdict: 'block',
      next: { kind: 'stop', stopReason: 'supervisor_block:revision_limit', phase: 'supervisor' },
    });
  });
});
