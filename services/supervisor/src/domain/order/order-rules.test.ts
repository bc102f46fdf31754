import {
  backoffMs,
  InternalError,
  NotFoundError,
  PreconditionError,
  UnauthenticatedError,
  UnavailableError,
} from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { isPermanent, reasonOf, stepsFrom } from './order-rules.ts';

const OPTIONS = { baseMs: 100, maxMs: 500 };

describe('order rules', () => {
  it('continues from the recorded step', () => {
    expect(stepsFrom('spawn_child', '')).toEqual(['acquire', 'open_tab', 'deliver']);
    expect(stepsFrom('spawn_child', 'open_tab')).toEqual(['open_tab', 'deliver']);
    // For an unknown step, such as a step of an older release, all steps are repeated; they are idempotent.
    expect(stepsFrom('wake_agent', 'unknown_step')).toEqual(['signal']);
  });

  it('treats a rejection as permanent, a fault after 8 attempts, and unavailability never', () => {
    expect(isPermanent(new PreconditionError('TAB_CLOSED', 'No.'), 1)).toBe(true);
    expect(isPermanent(new NotFoundError('TAB_NOT_FOUND', 'No.'), 1)).toBe(true);
    expect(isPermanent(new UnavailableError('UNAVAILABLE', 'Away.'), 1_000_000)).toBe(false);
    for (const fault of [
      new InternalError('INTERNAL', 'Oh.'),
      new UnauthenticatedError('TOKEN_INVALID', 'Unknown.', { check: 'kid' }),
      new TypeError('oh'),
    ]) {
      expect(isPermanent(fault, 1)).toBe(false);
      expect(isPermanent(fault, 8)).toBe(true);
    }
  });

  it('retries forever when a wrong clock makes tokens invalid (BD-3)', () => {
    for (const rejected of [
      new UnauthenticatedError('TOKEN_INVALID', 'Issued in the future.', { check: 'iat' }),
      new UnauthenticatedError('TOKEN_EXPIRED', 'Old.'),
    ]) {
      expect(isPermanent(rejected, 1_000_000)).toBe(false);
    }
  });

  it('backs off exponentially up to a limit, with full jitter', () => {
    const longest = [1, 2, 3, 4, 50].map((attempts) => backoffMs(attempts, OPTIONS, 0.999999));
    expect(longest).toEqual([100, 200, 400, 500, 500]);
    expect(backoffMs(3, OPTIONS, 0.25)).toBe(100);
  });

  it('returns the reason code of a failure, never its message', () => {
    expect(reasonOf(new UnavailableError('UNAVAILABLE', 'secret'))).toBe('UNAVAILABLE');
    expect(reasonOf(new Error('secret'))).toBe('INTERNAL');
  });
});
