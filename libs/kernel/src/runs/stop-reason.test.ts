import { describe, expect, it } from 'vitest';
import {
  isStopReason,
  isTerminal,
  LIVE_STATES,
  outcomeOf,
  TERMINAL_STATES,
} from './stop-reason.ts';

describe('stop reasons', () => {
  it.each([
    ['success', 'COMPLETED', 'ok'],
    ['paused', 'PAUSED', 'partial'],
    ['cancelled', 'CANCELLED', 'stopped'],
    ['max_seconds', 'TIMED_OUT', 'stopped'],
    ['deadline', 'TIMED_OUT', 'stopped'],
    ['halted', 'HALTED', 'stopped'],
    ['max_steps', 'MAX_STEPS', 'stopped'],
    ['max_tool_calls', 'MAX_STEPS', 'stopped'],
    ['budget_exhausted:tokens', 'BUDGET_EXCEEDED', 'stopped'],
    ['budget_exhausted:cost', 'BUDGET_EXCEEDED', 'stopped'],
    ['budget_exhausted:turns', 'BUDGET_EXCEEDED', 'stopped'],
    ['budget_exhausted:spawns', 'BUDGET_EXCEEDED', 'stopped'],
    ['supervisor_block:final_requires_context', 'BLOCKED', 'stopped'],
    ['human_rejected', 'BLOCKED', 'stopped'],
    ['approval_expired', 'BLOCKED', 'stopped'],
    ['tool_denied:issue_refund', 'BLOCKED', 'stopped'],
    ['tool_missing:x', 'BLOCKED', 'stopped'],
    ['tool_changed:x', 'BLOCKED', 'stopped'],
    ['tool_bad_args:x', 'BLOCKED', 'stopped'],
    ['loop_detected:per_tool_limit', 'BLOCKED', 'stopped'],
    ['loop_detected:signature_repeat', 'BLOCKED', 'stopped'],
    ['invalid_action:bad_arg_type:issue_refund:amount_usd', 'ERROR', 'stopped'],
    ['llm_timeout', 'ERROR', 'stopped'],
    ['llm_empty', 'ERROR', 'stopped'],
    ['provider_error:400', 'ERROR', 'stopped'],
    ['tool_error:x', 'ERROR', 'stopped'],
    ['tool_bad_result:x', 'ERROR', 'stopped'],
    ['outcome_unknown:x', 'ERROR', 'stopped'],
    ['stuck', 'ERROR', 'stopped'],
    ['error:INTERNAL', 'ERROR', 'stopped'],
  ])('%s ends in %s with status %s (AG-7)', (reason, state, status) => {
    expect(outcomeOf(reason)).toEqual({ state, status });
  });

  it('outside the table are rejected (AG-7)', () => {
    for (const bad of [
      '',
      ':',
      'won',
      'success:yes',
      'supervisor_block',
      'supervisor_block:',
      'budget_exhausted:love',
      'tool_denied:',
      'toString',
      'constructor:x',
    ]) {
      expect(isStopReason(bad)).toBe(false);
      expect(() => outcomeOf(bad)).toThrow(
        expect.objectContaining({ reason: 'INVALID_STOP_REASON' }),
      );
    }
  });

  it('lead to terminal states; live states are not terminal (RT-4)', () => {
    expect(TERMINAL_STATES.every(isTerminal)).toBe(true);
    expect(LIVE_STATES.some(isTerminal)).toBe(false);
  });
});
