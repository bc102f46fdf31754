import { describe, expect, it, vi } from 'vitest';
import { NO_ENDPOINT, retryDelayMs, stateAfter } from './next-attempt.ts';

const HOUR_MS = 60 * 60_000;

describe('a notification after an attempt', () => {
  it.each([
    ['delivered', 60, undefined],
    ['open', 59, 'status_503'],
    ['failed', 60, 'status_503'],
    ['failed', 1, NO_ENDPOINT],
  ])('is %s after attempt %d with the problem %s (PE-2)', (state, attempt, problem) => {
    expect(stateAfter(attempt, problem)).toBe(state);
  });

  it('is attempted for about a day on average, with delays of at most an hour (PE-2)', () => {
    const delays = (random: number): number[] => {
      vi.spyOn(Math, 'random').mockReturnValue(random);
      return Array.from({ length: 59 }, (_, index) => retryDelayMs(index + 1, 5_000));
    };
    expect(Math.max(...delays(1))).toBe(HOUR_MS);
    const hours = delays(0.5).reduce((sum, delay) => sum + delay, 0) / HOUR_MS;
    expect(hours).toBeGreaterThan(24);
    expect(hours).toBeLessThan(26);
  });
});
