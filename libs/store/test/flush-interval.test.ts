import { nextFlush } from '@writ/store';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

// Each test uses its own interval, because the schedule of an interval keeps times of an earlier fake clock.
const SOON_MS = 40;
const OTHER_MS = 43;

describe('nextFlush', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('resolves at the same time for all callers of one interval', async () => {
    const first = nextFlush(OTHER_MS);
    await vi.advanceTimersByTimeAsync(OTHER_MS - 1);
    expect(nextFlush(OTHER_MS)).toBe(first);
    expect(nextFlush(OTHER_MS + 1)).not.toBe(first);
    await vi.advanceTimersByTimeAsync(1);
    await first;
  });

  it('resolves after one interval when idle, and five intervals after the last flush while callers arrive continuously', async () => {
    const flushes: string[] = [];
    const wait = (name: string) => void nextFlush(SOON_MS).then(() => flushes.push(name));
    wait('after a pause');
    await vi.advanceTimersByTimeAsync(SOON_MS);
    expect(flushes).toEqual(['after a pause']);
    wait('in a stream');
    await vi.advanceTimersByTimeAsync(5 * SOON_MS - 1);
    expect(flushes).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(flushes).toEqual(['after a pause', 'in a stream']);
    await vi.advanceTimersByTimeAsync(1_000);
    wait('after another pause');
    await vi.advanceTimersByTimeAsync(SOON_MS);
    expect(flushes).toHaveLength(3);
  });
});
