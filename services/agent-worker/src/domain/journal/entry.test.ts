import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  assertAllReplayed,
  assertSameOperation,
  callIdOf,
  isProposalAfter,
  type Operation,
  readRecordedKind,
  recordedKind,
} from './entry.ts';

const recorded: Operation = {
  branch: '',
  position: 3,
  part: 0,
  kind: 'llm',
  argsDigest: 'a'.repeat(64),
};

describe('a journal entry', () => {
  it('is a later proposal if a branch, or a branch nested in it, requests it at or after a position (AG-10, RT-1)', () => {
    const review: Operation = { ...recorded, kind: 'review' };
    const nested: Operation = { ...recorded, kind: 'spawn', branch: '12.0.4.1', position: 0 };
    expect(isProposalAfter(review, '', 3)).toBe(true);
    expect(isProposalAfter(review, '', 4)).toBe(false);
    expect(isProposalAfter(review, '12.0', 0)).toBe(false);
    expect(isProposalAfter(recorded, '', 3)).toBe(false);
    expect(isProposalAfter(nested, '', 12)).toBe(true);
    expect(isProposalAfter(nested, '', 13)).toBe(false);
    expect(isProposalAfter(nested, '12.0', 4)).toBe(true);
    expect(isProposalAfter(nested, '12.0', 5)).toBe(false);
    expect(isProposalAfter(nested, '1', 0)).toBe(false);
  });

  it('accepts the same operation (RT-1)', () => {
    expect(() => assertSameOperation(recorded, { ...recorded }, 'refund-1')).not.toThrow();
  });

  it('rejects a different operation; the error names the position and both operations (RT-1)', () => {
    const asked: Operation = { ...recorded, kind: 'review', argsDigest: 'b'.repeat(64) };
    expect(() => assertSameOperation(recorded, asked, 'refund-1')).toThrow(
      'refund-1 diverges from its journal at index 3: recorded llm (aaaaaaaaaaaa), but the agent requested review (bbbbbbbbbbbb).',
    );
  });

  it('rejects different arguments; the error contains both digests (RT-1)', () => {
    const asked: Operation = { ...recorded, argsDigest: 'b'.repeat(64) };
    expect(() => assertSameOperation(recorded, asked, 'refund-1')).toThrow(
      'requested llm with different arguments (aaaaaaaaaaaa recorded, bbbbbbbbbbbb requested)',
    );
  });

  it('of an earlier version is replayed without comparing its arguments (RT-1, BD-6)', () => {
    const asked: Operation = { ...recorded, argsDigest: 'b'.repeat(64) };
    const older = { ...recorded, version: 1 };
    expect(() => assertSameOperation(older, asked, 'refund-1', 2)).not.toThrow();
    expect(() => assertSameOperation(older, asked, 'refund-1', 1)).toThrow('different arguments');
    const other: Operation = { ...asked, kind: 'review' };
    expect(() => assertSameOperation(older, other, 'refund-1', 2)).toThrow('requested review');
  });

  it('of a later version is rejected (RT-1, BD-6)', () => {
    expect(() => assertSameOperation({ ...recorded, version: 2 }, recorded, 'refund-1', 1)).toThrow(
      'recorded llm (aaaaaaaaaaaa), but the agent supports llm only up to version 1, not version 2.',
    );
  });

  it('contains the version of its operation, except for version 1 (RT-1, BD-6)', () => {
    expect(recordedKind('llm', 1)).toBe('llm');
    expect(recordedKind('llm', 2)).toBe('llm@2');
    expect(readRecordedKind('llm')).toEqual({ kind: 'llm', version: 1 });
    expect(readRecordedKind('llm@2')).toEqual({ kind: 'llm', version: 2 });
  });

  it('is reported when the agent has not requested its operation (RT-1)', () => {
    expect(() => assertAllReplayed([recorded], () => 4, 'refund-1')).not.toThrow();
    expect(() => assertAllReplayed([recorded], () => 3, 'refund-1')).toThrow('at index 3');
  });

  it('has a call_id that depends only on its branch and position (RT-1)', () => {
    const ids = [0, 1, 12].map((position) => callIdOf({ branch: '', position }));
    expect(ids).toEqual(['op-0', 'op-1', 'op-12']);
    expect(callIdOf({ branch: '3.1', position: 0 })).toBe('op-3-1-0');
  });

  it('has a unique, valid call_id at every position and depth (RT-1)', () => {
    const path = fc.array(fc.nat(300), { minLength: 1, maxLength: 31 });
    const place = path.filter(({ length }) => length % 2 === 1);
    fc.assert(
      fc.property(fc.uniqueArray(place, { maxLength: 20, selector: String }), (places) => {
        const ids = places.map((numbers) =>
          callIdOf({ branch: numbers.slice(0, -1).join('.'), position: numbers.at(-1) ?? 0 }),
        );
        expect(new Set(ids).size).toBe(places.length);
        for (const id of ids) expect(id).toMatch(/^[a-z0-9_-]{1,64}$/);
      }),
    );
  });

  it('is reported with its branch when it diverges (RT-1)', () => {
    const inBranch = { ...recorded, branch: '3.1' };
    expect(() => assertAllReplayed([inBranch], () => 0, 'refund-1')).toThrow('at index 3.1.3');
  });
});
