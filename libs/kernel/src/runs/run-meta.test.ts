import { describe, expect, it } from 'vitest';
import { CancellationError, DeadlineError } from '../errors/errors.ts';
import { CancellationToken } from '../time/cancellation.ts';
import { ManualClock } from '../time/clock.ts';
import { isTraceparent, newTraceparent, RunMeta } from './run-meta.ts';

const at = (clock: ManualClock, ms: number): Date => new Date(clock.now().getTime() + ms);

describe('RunMeta', () => {
  it('has generated ids, a trace and a cancellation token by default (SUP-5)', () => {
    const meta = RunMeta.standalone();
    expect(meta).toMatchObject({ tenantId: 'default', epoch: 0, supervision: undefined });
    expect(isTraceparent(meta.traceparent)).toBe(true);
    expect(Object.isFrozen(meta)).toBe(true);
    expect(() => meta.check()).not.toThrow();
    expect(RunMeta.standalone().runId).not.toBe(meta.runId);
  });

  it('throws from check() once cancelled (SUP-5)', () => {
    const cancellation = new CancellationToken();
    const meta = RunMeta.standalone({ cancellation });
    cancellation.cancel('user stopped');
    expect(() => meta.check()).toThrow(CancellationError);
  });

  it('throws from check() once the deadline has passed (SUP-5)', () => {
    const clock = new ManualClock();
    const meta = RunMeta.standalone({ clock, deadline: at(clock, 1000) });
    clock.advance(999);
    expect(() => meta.check()).not.toThrow();
    expect(meta.remainingMs()).toBe(1);
    clock.advance(1);
    expect(() => meta.check()).toThrow(DeadlineError);
  });

  it('reports a cancellation rather than an expired deadline when both apply (AG-7)', () => {
    const clock = new ManualClock();
    const meta = RunMeta.standalone({ clock, deadline: at(clock, -1) });
    meta.cancellation.cancel('first');
    expect(() => meta.check()).toThrow(CancellationError);
  });

  it('creates a changed copy with the same cancellation token (SUP-5)', () => {
    const meta = RunMeta.standalone();
    const agent = { name: 'helper', instance: 'helper-1' };
    const next = meta.with({ agent, epoch: 7 });
    expect(next).toMatchObject({ agent, epoch: 7, runId: meta.runId });
    meta.cancellation.cancel('all');
    expect(() => next.check()).toThrow(CancellationError);
  });

  it('rejects malformed fields, naming the field (SYS-3, SYS-6)', () => {
    expect(() => RunMeta.standalone({ tenantId: 'A/B' })).toThrow(/tenant_id/);
    expect(() => RunMeta.standalone({ epoch: -1 })).toThrow(/epoch/);
    expect(() => RunMeta.standalone({ traceparent: 'none' })).toThrow(/traceparent/);
  });
});

describe('traceparent', () => {
  it('is W3C trace context (SYS-1)', () => {
    expect(isTraceparent(newTraceparent())).toBe(true);
    const [trace, span] = ['a'.repeat(32), 'b'.repeat(16)];
    expect(isTraceparent(`00-${trace}-${span}-00`)).toBe(true);
    for (const bad of [
      `ff-${trace}-${span}-00`,
      `00-${'0'.repeat(32)}-${span}-00`,
      `00-${trace}-${'0'.repeat(16)}-00`,
      `00-${trace.toUpperCase()}-${span}-00`,
      7,
    ]) {
      expect(isTraceparent(bad)).toBe(false);
    }
  });
});
