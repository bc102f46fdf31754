import { describe, expect, it } from 'vitest';
import { isPriority, Priority, priorityName } from './priority.ts';

describe('priority', () => {
  it('has the five weights and their names (SUP-3)', () => {
    expect(Priority).toEqual({ BACKGROUND: 0, LOW: 1, NORMAL: 2, HIGH: 4, CRITICAL: 8 });
    for (const [name, weight] of Object.entries(Priority)) expect(priorityName(weight)).toBe(name);
  });

  it('rejects other weights (SUP-3)', () => {
    for (const bad of [3, 16, -1, 1.5, '2', Number.NaN, undefined]) {
      expect(isPriority(bad)).toBe(false);
    }
    expect(isPriority(8)).toBe(true);
  });
});
