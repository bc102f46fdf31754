import {
  InternalError,
  NotFoundError,
  PreconditionError,
  UnauthenticatedError,
  UnavailableError,
} from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { isLasting, reasonOf, retryDelayMs, stepsFrom } from './order-rules.ts';

describe('the rules of orders', () => {
  it('go on from the step where an order stands', () => {
    expect(stepsFrom('start_run', '')).toEqual(['open_pool', 'open_tab', 'deliver']);
    expect(stepsFrom('start_run', 'open_tab')).toEqual(['open_tab', 'deliver']);
    // A step of an older release: all of them are idempotent.
    expect(stepsFrom('wake_agent', 'unheard_of')).toEqual(['signal']);
  });

  it('give up on refusals at once, on faults after a while, on absence never', () => {
    expect(isLasting(new PreconditionError('TAB_CLOSED', 'No.'), 1)).toBe(true);
    expect(isLasting(new NotFoundError('TAB_NOT_FOUND', 'No.'), 1)).toBe(true);
    expect(isLasting(new UnavailableError('UNAVAILABLE', 'Away.'), 1_000_000)).toBe(false);
    for (const fault of [
      new InternalError('INTERNAL', 'Oh.'),
      new UnauthenticatedError('TOKEN_EXPIRED', 'Old.'),
      new TypeError('oh'),
    ]) {
      expect(isLasting(fault, 1)).toBe(false);
      expect(isLasting(fault, 8)).toBe(true);
    }
  });

  it('wait longer and longer, up to a limit, each for a random part of it', () => {
    const longest = [1, 2, 3, 4, 50].map((attempts) => retryDelayMs(attempts, 100, 500, 0.999999));
    expect(longest).toEqual([100, 200, 400, 500, 500]);
    expect(retryDelayMs(3, 100, 500, 0.25)).toBe(100);
  });

  it('tell the reason of a failure, never its words', () => {
    expect(reasonOf(new UnavailableError('UNAVAILABLE', 'secret'))).toBe('UNAVAILABLE');
    expect(reasonOf(new Error('secret'))).toBe('INTERNAL');
  });
});
