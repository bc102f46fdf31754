import { describe, expect, it } from 'vitest';
import { assertAllAsked, assertSameOperation, callIdOf, type Operation } from './entry.ts';

const recorded: Operation = { position: 3, part: 0, kind: 'llm', argsDigest: 'a'.repeat(64) };

describe('a journal entry', () => {
  it('lets the same operation pass (RT-1)', () => {
    expect(() => assertSameOperation(recorded, { ...recorded }, 'desk-1')).not.toThrow();
  });

  it('names the place and both sides of another operation (RT-1)', () => {
    const asked: Operation = { ...recorded, kind: 'review', argsDigest: 'b'.repeat(64) };
    expect(() => assertSameOperation(recorded, asked, 'desk-1')).toThrow(
      'desk-1 diverges from its journal at index 3: it recorded llm (aaaaaaaaaaaa), but asked for review (bbbbbbbbbbbb) now.',
    );
  });

  it('names both digests of other arguments (RT-1)', () => {
    const asked: Operation = { ...recorded, argsDigest: 'b'.repeat(64) };
    expect(() => assertSameOperation(recorded, asked, 'desk-1')).toThrow(
      'asked for llm with other arguments (aaaaaaaaaaaa then, bbbbbbbbbbbb now)',
    );
  });

  it('misses what an agent did not ask for (RT-1)', () => {
    expect(() => assertAllAsked([recorded], 4, 'desk-1')).not.toThrow();
    expect(() => assertAllAsked([recorded], 3, 'desk-1')).toThrow('at index 3');
  });

  it('gives an operation the same id whenever it is asked for (RT-1)', () => {
    expect([0, 1, 12].map(callIdOf)).toEqual(['op-0', 'op-1', 'op-12']);
  });
});
