import { describe, expect, it } from 'vitest';
import { ManualClock, systemClock } from './clock.ts';

describe('clocks', () => {
  it('follow the system time, or advance only manually', () => {
    expect(Math.abs(systemClock.now().getTime() - Date.now())).toBeLessThan(1000);
    const clock = new ManualClock(new Date(5));
    clock.advance(10);
    clock.advance(-3);
    expect(clock.now()).toEqual(new Date(12));
  });
});
