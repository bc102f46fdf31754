import { describe, expect, it } from 'vitest';
import {
  type Decision,
  isReportableToModel,
  phaseOfRefusal,
  refusalOf,
  withoutWrit,
} from './decision.ts';

const decision: Decision = {
  decisionId: 'dec-1',
  callId: 'op-1',
  verdict: 'block',
  reason: 'email_before_refund',
  approvalId: '',
  settled: true,
  stopReason: '',
  runEnded: false,
};

describe('a decision', () => {
  it('refuses a proposal with its stop reason, or with supervisor_block if it has none (SV-1, AG-10)', () => {
    expect(refusalOf({ ...decision, stopReason: 'human_rejected' })).toBe('human_rejected');
    expect(refusalOf(decision)).toBe('supervisor_block:email_before_refund');
    const executedAction = { kind: 'final', answer: 'Done.' } as const;
    expect(refusalOf({ ...decision, verdict: 'approve', executedAction })).toBeUndefined();
  });

  it('determines the phase in which the proposal stopped (SV-7)', () => {
    expect(phaseOfRefusal(decision)).toBe('supervisor');
    expect(phaseOfRefusal({ ...decision, verdict: 'invalid' })).toBe('worker');
    expect(phaseOfRefusal({ ...decision, stopReason: 'max_steps' })).toBe('worker');
    expect(phaseOfRefusal({ ...decision, stopReason: 'approval_expired' })).toBe('human_approval');
    const humanApproval = { approved: false, comment: '', basis: '' };
    expect(phaseOfRefusal({ ...decision, humanApproval })).toBe('human_approval');
  });

  it('is stored without its writ and the expiry of the writ (SV-6)', () => {
    expect(withoutWrit({ ...decision, writ: 'secret', writExpiresAt: 1 })).toEqual(decision);
  });

  it('is reported to the model after a refusal by policy, a human or a tool limit and after a tool error, but not at a limit of the run (AG-10)', () => {
    const reportable = ['supervisor_block:x', 'human_rejected', 'loop_detected:x', 'tool_error:x'];
    const stops = ['max_steps', 'max_tool_calls', 'deadline', 'budget_exhausted:cost', 'nonsense'];
    expect(reportable.filter(isReportableToModel)).toEqual(reportable);
    expect(stops.filter(isReportableToModel)).toEqual([]);
  });
});
