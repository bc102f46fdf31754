import { describe, expect, it } from 'vitest';
import { checkReportedOutcome, type OutcomeEvidence } from './check-reported-outcome.ts';

const NOW = new Date('2026-02-26T10:00:00Z');
const NOTHING: OutcomeEvidence = {
  decision: undefined,
  receipt: undefined,
  steps: 2,
  maxSteps: 8,
  activeMs: 1_000,
  maxActiveMs: 30_000,
  now: NOW,
  deadlineAt: null,
};
const check = (stopReason: string, evidence: Partial<OutcomeEvidence> = {}) =>
  checkReportedOutcome(
    { stopReason, phase: 'worker', callId: 'op-1' },
    { ...NOTHING, ...evidence },
  );

describe('checkReportedOutcome', () => {
  it('confirms a stop reason by the decision, with its phase (SV-7)', () => {
    const stopReason = 'supervisor_block:no';
    expect(check(stopReason, { decision: { stopReason, phase: 'supervisor' } })).toEqual({
      phase: 'supervisor',
      unverified: false,
    });
  });

  it('confirms a stop reason by the receipt', () => {
    const stopReason = 'tool_error:act';
    expect(check(stopReason, { receipt: { stopReason } })).toEqual({
      phase: 'execution',
      unverified: false,
    });
  });

  it('marks a stop reason that no record confirms', () => {
    const decision = { stopReason: null, phase: null };
    expect(check('supervisor_block:no', { decision })).toMatchObject({ unverified: true });
    expect(check('tool_error:act', { receipt: { stopReason: null } })).toMatchObject({
      unverified: true,
    });
    expect(check('stuck')).toEqual({ phase: 'worker', unverified: true });
  });

  it('checks max_steps, max_seconds and deadline against the recorded steps and times', () => {
    expect(check('max_steps').unverified).toBe(true);
    expect(check('max_steps', { steps: 8 }).unverified).toBe(false);
    expect(check('max_seconds').unverified).toBe(true);
    expect(check('max_seconds', { activeMs: 30_000 }).unverified).toBe(false);
    expect(check('deadline').unverified).toBe(true);
    expect(check('deadline', { deadlineAt: NOW }).unverified).toBe(false);
  });

  it.each(['success', 'paused', 'cancelled', 'halted'])('rejects a reported %s', (stopReason) => {
    expect(() => check(stopReason)).toThrow('cannot be reported');
  });

  it('rejects unknown stop reasons', () => {
    expect(() => check('supervisor_block:')).toThrow('stop_reason is not a known stop reason');
  });
});
