import { describe, expect, it } from 'vitest';
import { handoffFailure, handoffObservation } from './handoff.ts';

const made = (stopReason: string | undefined, answer?: string) =>
  ({ kind: 'made', instance: 'scout-1', stopReason, answer }) as const;

describe('handoff observation', () => {
  it('contains the reviewed answer of the child (AG-3, SV-7)', () => {
    expect(handoffObservation(made('success', 'Seen.'))).toBe(
      '{"status":"replied","agent":"scout-1","answer":"Seen."}',
    );
    expect(handoffFailure(made('success', 'Seen.'))).toBeUndefined();
  });

  it('is marked partial when the child was paused (SB-4)', () => {
    expect(handoffObservation(made('paused', 'Half.'))).toContain('"partial":true');
    expect(handoffFailure(made('paused', 'Half.'))).toBeUndefined();
  });

  it('contains the reason for a missing answer (AG-3)', () => {
    expect(handoffObservation(made('max_steps'))).toBe(
      '{"status":"failed","agent":"scout-1","stop_reason":"max_steps"}',
    );
    expect(handoffFailure(made('max_steps'))).toBe('max_steps');
    expect(handoffFailure(made(undefined))).toBe('cancelled');
    const refused = { kind: 'refused', sentence: 'Full.' } as const;
    expect(handoffObservation(refused)).toBe('{"status":"refused","message":"Full."}');
    expect(handoffFailure(refused)).toBe('budget_exhausted:spawns');
    const failed = { kind: 'failed', reason: 'UNAVAILABLE' } as const;
    expect(handoffObservation(failed)).toBe('{"status":"failed","reason":"UNAVAILABLE"}');
    expect(handoffFailure(failed)).toBe('error:UNAVAILABLE');
  });
});
