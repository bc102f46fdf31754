import { describe, expect, it } from 'vitest';
import { call, input, policyOf } from '../../test/reviews.ts';
import { reviewToFixpoint } from '../index.ts';

describe('a review of revisions', () => {
  const counting = (limit: number) =>
    policyOf(`
  - { id: more, match: { tool: pay }, when: args.n < ${limit}.0, decide: revise, reason: more, set: { n: { cel: args.n + 1.0 } } }
  - { id: big, match: { tool: pay }, when: args.n > 90.0, decide: escalate, reason: big }
  - { id: bad, match: { tool: pay }, when: args.n > 80.0, decide: block, reason: bad }
  - { id: ok, match: { tool: pay }, decide: approve, reason: ok }
`);
  const run = (limit: number, n: number) => {
    const policy = counting(limit);
    return reviewToFixpoint(policy, input(policy, call('pay', { n })));
  };

  it('takes one pass when nothing is revised (SV-10)', () => {
    const outcome = run(0, 1);
    expect(outcome).toMatchObject({ verdict: 'approve', revised: false });
    expect(outcome.passes).toHaveLength(1);
    expect(outcome.shown.decision.reason).toBe('ok');
  });

  it('runs the rules on the revised action, four times at most (SV-10)', () => {
    const outcome = run(4, 0);
    expect(outcome).toMatchObject({ verdict: 'approve', revised: true });
    expect(outcome.action.args).toEqual({ n: 4 });
    expect(outcome.passes.map(({ decision }) => decision.reason)).toEqual([
      'more',
      'more',
      'more',
      'more',
      'ok',
    ]);
    expect(outcome.shown.decision).toMatchObject({ verdict: 'revise', reason: 'more' });
    expect(outcome.shown.decision.revisedAction?.args).toEqual({ n: 1 });
  });

  it('blocks an action that is revised more than four times (SV-10)', () => {
    const outcome = run(5, 0);
    expect(outcome).toMatchObject({ verdict: 'block', decision: { reason: 'revision_limit' } });
    expect(outcome.decision.revisedAction).toBeUndefined();
    expect(outcome.decision.counts).toEqual({});
    expect(outcome.passes).toHaveLength(5);
    expect(outcome.shown.decision.reason).toBe('revision_limit');
  });

  it('shows the escalation when a revised action is escalated (SV-7, SV-10)', () => {
    const outcome = run(91, 90);
    expect(outcome).toMatchObject({ verdict: 'escalate', revised: true });
    expect(outcome.shown.decision.reason).toBe('big');
    expect(outcome.action.args).toEqual({ n: 91 });
  });

  it('shows the block when a revised action is blocked (SV-7, SV-10)', () => {
    const outcome = run(85, 84);
    expect(outcome.verdict).toBe('block');
    expect(outcome.shown.decision.reason).toBe('bad');
  });
});
