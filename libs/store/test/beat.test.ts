import { nextBeat } from '@writ/store';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

describe('nextBeat', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('is one moment for all who wait the same time', async () => {
    const first = nextBeat(40);
    await vi.advanceTimersByTimeAsync(30);
    expect(nextBeat(40)).toBe(first);
    expect(nextBeat(41)).not.toBe(first);
    await vi.advanceTimersByTimeAsync(10);
    await first;
  });

  it('comes soon after a pause, and a quarter of a second after the one before', async () => {
    const beats: string[] = [];
    const wait = (name: string) => void nextBeat(50).then(() => beats.push(name));
    wait('after a pause');
    await vi.advanceTimersByTimeAsync(50);
    expect(beats).toEqual(['after a pause']);
    wait('in a stream');
    await vi.advanceTimersByTimeAsync(249);
    expect(beats).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(beats).toEqual(['after a pause', 'in a stream']);
    await vi.advanceTimersByTimeAsync(1_000);
    wait('after another pause');
    await vi.advanceTimersByTimeAsync(50);
    expect(beats).toHaveLength(3);
  });
});
