import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  assertPattern,
  assertSubject,
  HOOK_SUBJECTS,
  hookSubject,
  matchSubject,
  progressAgent,
  progressOfRun,
  progressSubject,
} from './subjects.ts';

const id = fc.stringMatching(/^[a-z0-9_-]{1,64}$/).filter((text) => text !== '-');

describe('hook subjects', () => {
  it('name tenant, run, agent and event (HK-2)', () => {
    const address = { tenant: 't1', runId: 'run_1', agent: 'ag-1', event: 'LLM_START' };
    expect(hookSubject(address)).toBe('writ.hooks.v1.t1.run_1.ag-1.LLM_START');
  });

  it('have - for absent parts (HK-1)', () => {
    expect(hookSubject({ tenant: 't1', event: 'HALTED' })).toBe('writ.hooks.v1.t1.-.-.HALTED');
    expect(hookSubject({ event: 'HALTED' })).toBe('writ.hooks.v1.-.-.-.HALTED');
  });

  it('reject tokens that would change tenant, run or event (SYS-6)', () => {
    const bad = ['', '-', '*', '>', 'a.b', 'A', 'a b', 'a'.repeat(65)];
    for (const value of bad) {
      for (const [field, token] of [
        ['tenant', { tenant: value }],
        ['run_id', { runId: value }],
        ['agent_id', { agent: value }],
      ] as const) {
        expect(() => hookSubject({ event: 'RUN_END', ...token })).toThrow(
          expect.objectContaining({ kind: 'invalid_argument', metadata: { field } }),
        );
      }
    }
    for (const event of ['', '-', 'run_end', 'RUN.END', '*', '>', 'RUN END', 'X'.repeat(65)]) {
      expect(() => hookSubject({ event })).toThrow(
        expect.objectContaining({ reason: 'INVALID_EVENT', metadata: { field: 'event' } }),
      );
    }
  });

  it('differ by tenant for any ids (SYS-6)', () => {
    fc.assert(
      fc.property(id, id, id, (tenant, other, run) => {
        const subject = hookSubject({ tenant, runId: run, event: 'RUN_START' });
        expect(assertSubject(subject)).toBe(subject);
        expect(matchSubject(HOOK_SUBJECTS, subject)).toBe(true);
        expect(matchSubject(`writ.hooks.v1.${other}.>`, subject)).toBe(tenant === other);
        expect(matchSubject(`writ.hooks.v1.*.${run}.*.RUN_START`, subject)).toBe(true);
      }),
    );
  });
});

describe('progress subjects', () => {
  it('name tenant, run and agent, and match no hook subject (SUP-1)', () => {
    const subject = progressSubject({ tenant: 't1', runId: 'run_1', agent: 'ag-1' });
    expect(subject).toBe('writ.progress.v1.t1.run_1.ag-1');
    expect(progressAgent(subject)).toBe('ag-1');
    expect(matchSubject(HOOK_SUBJECTS, subject)).toBe(false);
    for (const bad of ['', '-', '*', '>', 'a.b']) {
      for (const [field, token] of [
        ['tenant', { tenant: bad }],
        ['run_id', { runId: bad }],
      ] as const) {
        expect(() => progressOfRun({ tenant: 't1', runId: 'run_1', ...token })).toThrow(
          expect.objectContaining({ reason: 'INVALID_ID', metadata: { field } }),
        );
      }
    }
  });

  it('match only one run of one tenant for any ids (SYS-6)', () => {
    fc.assert(
      fc.property(id, id, id, id, id, (tenant, otherTenant, runId, otherRun, agent) => {
        const pattern = progressOfRun({ tenant: otherTenant, runId: otherRun });
        const subject = progressSubject({ tenant, runId, agent });
        const isSame = tenant === otherTenant && runId === otherRun;
        expect(matchSubject(pattern, subject)).toBe(isSame);
      }),
    );
  });
});

describe('matching a subject', () => {
  it.each([
    ['a.b', 'a.b', true],
    ['a.b', 'a.c', false],
    ['a.b', 'a', false],
    ['a', 'a.b', false],
    ['*', 'a', true],
    ['*', 'a.b', false],
    ['a.*', 'a.b', true],
    ['a.*', 'a', false],
    ['a.*.c', 'a.b.c', true],
    ['a.*.c', 'a.b.d', false],
    ['*.*', 'a.b', true],
    ['>', 'a', true],
    ['>', 'a.b.c', true],
    ['a.>', 'a', false],
    ['a.>', 'a.b', true],
    ['a.>', 'a.b.c', true],
    ['a.>', 'b.a', false],
    ['a.*.>', 'a.b', false],
    ['a.*.>', 'a.b.c.d', true],
  ])('%s matches %s: %s', (pattern, subject, isMatch) => {
    expect(matchSubject(pattern, subject)).toBe(isMatch);
  });

  it('rejects invalid subjects and patterns', () => {
    for (const bad of ['', '.', 'a.', '.a', 'a..b', 'a b', 'a.>.b', 'a.b*', '>>', 'a.*b']) {
      expect(() => assertPattern(bad)).toThrow(
        expect.objectContaining({ reason: 'INVALID_SUBJECT' }),
      );
      expect(() => assertSubject(bad)).toThrow(
        expect.objectContaining({ reason: 'INVALID_SUBJECT' }),
      );
    }
    for (const wild of ['*', '>', 'a.*', 'a.>', 'a.*.b']) {
      expect(assertPattern(wild)).toBe(wild);
      expect(() => assertSubject(wild)).toThrow(
        expect.objectContaining({ reason: 'INVALID_SUBJECT' }),
      );
    }
  });
});
