import { afterEach, expect, it, vi } from 'vitest';
import { CallDeadline } from '../src/calls/call-deadline.ts';
import { retrying } from '../src/client/retry.ts';

const HOUR_MS = 3_600_000;

afterEach(() => vi.restoreAllMocks());

/** Moves the wall clock by `byMs` and stops it there. */
function step(byMs: number): void {
  const now = Date.now() + byMs;
  vi.spyOn(Date, 'now').mockReturnValue(now);
}

it('keeps the deadline of a call on the server when the wall clock changes (BD-3)', () => {
  const deadline = new CallDeadline(60_000, () => undefined);
  step(HOUR_MS);
  expect(deadline.isExpired).toBe(false);
  expect(deadline.remainingMs).toBeGreaterThan(0);
  expect(deadline.remainingMs).toBeLessThanOrEqual(60_000);
  deadline.clear();
  const past = new CallDeadline(0, () => undefined);
  step(-2 * HOUR_MS);
  expect(past.isExpired).toBe(true);
  past.clear();
});

it('keeps the time limit of client retries when the wall clock changes (BD-3)', async () => {
  const attempts: number[] = [];
  const result = await retrying(
    { initialDelayMs: 1, maxDelayMs: 1 },
    {
      work: async (attempt) => {
        attempts.push(attempt);
        step(HOUR_MS);
        if (attempt === 1) throw new Error('Again.');
        return 'done';
      },
      isRetryable: () => true,
      onRetry: () => undefined,
      deadlineAt: performance.now() + 60_000,
      signal: undefined,
    },
  );
  expect(result).toBe('done');
  expect(attempts).toEqual([1, 2]);
});
