import { Priority } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import type { PoolEvent } from './events.ts';
import { openPool } from './open.ts';
import { heldSlots, mayActUntil, type Pool } from './pool.ts';
import { queuedMembers } from './queue.ts';
import { reduce } from './reduce.ts';

const ROOT = { name: 'lead', instance: 'root' };
const LEASE_MS = 15_000;

function pool(maxAgents: number, deadline?: number): Pool {
  return openPool(
    {
      root: ROOT,
      priority: Priority.NORMAL,
      budget: { maxAgents, allowPreempt: true },
      ...(deadline === undefined ? {} : { deadline }),
    },
    { at: 0, leaseMs: LEASE_MS },
  );
}

function acquire(instance: string, priority: Priority = Priority.NORMAL): PoolEvent {
  const agent = { name: 'child', instance };
  return { type: 'acquire', agent, parent: ROOT, depth: 1, priority };
}

/** The pool after `events`, all at `at`. */
function after(start: Pool, events: readonly PoolEvent[], at = 0): Pool {
  return events.reduce((now, event) => reduce(now, event, { at, leaseMs: LEASE_MS }).pool, start);
}

function stateOf(now: Pool, instance: string): string | undefined {
  return now.members.get(instance)?.state;
}

describe('reduce', () => {
  it('does not change the given pool (SB-6)', () => {
    const before = after(pool(2), [acquire('low', Priority.LOW)]);
    const copy = structuredClone(before);
    after(before, [acquire('high', Priority.HIGH), { type: 'close' }]);
    expect(before).toEqual(copy);
  });

  it('gives a slot freed by a demotion to the next acquire while the demoted agent stays queued (SB-5)', () => {
    const demoted = after(pool(2), [
      acquire('a'),
      { type: 'reprioritize', instance: 'a', priority: Priority.LOW },
      acquire('b', Priority.BACKGROUND),
    ]);
    expect(stateOf(demoted, 'a')).toBe('paused');
    expect(stateOf(demoted, 'b')).toBe('active');
    const freed = after(demoted, [{ type: 'release', instance: 'b' }]);
    expect(stateOf(freed, 'a')).toBe('active');
  });

  it('neither pauses a paused agent again nor frees a slot when it is released (SB-6)', () => {
    const paused = after(pool(2), [acquire('low', Priority.LOW), acquire('high', Priority.HIGH)]);
    const refused = reduce(paused, acquire('high-2', Priority.HIGH), { at: 0, leaseMs: LEASE_MS });
    expect(refused.outcome.refusal).toMatchObject({ cap: 'max_agents', why: 'no_lower_priority' });
    expect(heldSlots(after(refused.pool, [{ type: 'release', instance: 'low' }]))).toBe(2);
  });

  it('queues agents by priority, then promoted agents first, then by waiting time (SB-4, SB-5)', () => {
    const queued = after(pool(4), [
      acquire('low-1', Priority.LOW),
      acquire('low-2', Priority.LOW),
      acquire('normal', Priority.NORMAL),
      acquire('c-1', Priority.CRITICAL),
      acquire('c-2', Priority.CRITICAL),
      acquire('c-3', Priority.CRITICAL),
    ]);
    const names = (now: Pool) => queuedMembers(now).map(({ agent }) => agent.instance);
    expect(names(queued)).toEqual(['normal', 'low-1', 'low-2']);
    const promoted = after(queued, [
      { type: 'reprioritize', instance: 'low-1', priority: Priority.NORMAL },
      { type: 'reprioritize', instance: 'low-2', priority: Priority.NORMAL },
    ]);
    expect(names(promoted)).toEqual(['low-2', 'low-1', 'normal']);
  });

  it('queues no agent whose lease expired, and dequeues an agent that suspends (SB-8)', () => {
    const expired = after(
      after(pool(2), [acquire('dead', Priority.HIGH)]),
      [{ type: 'expire' }],
      LEASE_MS,
    );
    expect(heldSlots(expired)).toBe(1);
    expect(queuedMembers(expired)).toEqual([]);
    const suspended = after(
      expired,
      [
        acquire('next'),
        { type: 'renew', instance: 'dead', epoch: 1n, intent: 'park' },
        { type: 'renew', instance: 'dead', epoch: 1n, intent: 'suspend' },
        { type: 'release', instance: 'next' },
      ],
      LEASE_MS,
    );
    expect(stateOf(suspended, 'dead')).toBe('waiting');
  });

  it('lets an agent act until a margin before its lease ends, or until the deadline (SB-4)', () => {
    const open = pool(2);
    const [root] = open.members.values();
    expect(root && mayActUntil(open, root, 1_000)).toBe(14_000);
    const short = pool(2, 3_000);
    const [brief] = short.members.values();
    expect(brief && mayActUntil(short, brief, 1_000)).toBe(3_000);
    const over = pool(2, 0);
    const [late] = over.members.values();
    expect(late && mayActUntil(over, late, 1_000)).toBeUndefined();
  });
});
