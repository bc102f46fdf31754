import { describe, expect, it } from 'vitest';
import { mayReplace } from './replace-run.ts';

const NOW = new Date('2026-11-01T12:00:00Z');
const LATER = new Date('2026-11-01T13:00:00Z');

const run = { stopReason: 'cancelled', definitionHash: 'a', deadlineAt: LATER };

describe('the next request of an agent key (AP-1, EM-2)', () => {
  it.each(['closed', 'idle', 'deadline', 'error:TOOL_FAILED', 'halted'])(
    'opens another run after a run that ended with %s',
    (stopReason) => {
      expect(mayReplace({ ...run, stopReason }, 'a', NOW)).toBe(true);
    },
  );

  it.each(['budget_exhausted:cost', 'max_seconds', 'max_tool_calls', 'cancelled'])(
    'does not open another run after a run that ended with %s',
    (stopReason) => {
      expect(mayReplace({ ...run, stopReason }, 'a', NOW)).toBe(false);
      expect(mayReplace({ ...run, stopReason, deadlineAt: null }, 'a', NOW)).toBe(false);
    },
  );

  it('opens another run after the deadline, and after a change of the definition', () => {
    expect(mayReplace({ ...run, deadlineAt: NOW }, 'a', NOW)).toBe(true);
    expect(mayReplace(run, 'b', NOW)).toBe(true);
  });
});
