import { isWritError, Priority } from '@writ/kernel';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HeadcountModel } from '../../../test/headcount-model.ts';
import type { PoolEvent, Reduced, RenewIntent } from './events.ts';
import { openPool } from './open.ts';
import { heldSlots, isPastDeadline, type Pool } from './pool.ts';
import { queuedMembers } from './queue.ts';
import { reduce } from './reduce.ts';

const LEASE_MS = 15;
const SCHEDULES = 10_000;
const WEIGHTS = [
  Priority.BACKGROUND,
  Priority.LOW,
  Priority.NORMAL,
  Priority.HIGH,
  Priority.CRITICAL,
] as const;
const INTENTS: readonly RenewIntent[] = ['run', 'run', 'suspend', 'park'];
/** Every state change that the rules allow. */
const TRANSITIONS = [
  'active → paused',
  'active → released',
  'active → suspended',
  'active → waiting',
  'paused → active',
  'paused → released',
  'suspended → active',
  'suspended → released',
  'suspended → waiting',
  'waiting → active',
  'waiting → released',
];
const WHERE = {
  active: 'running',
  suspended: 'suspended',
  paused: 'paused',
  waiting: 'waiting',
  released: 'released',
} as const;

/** Derives small numbers from a random word. */
function dice(word: number): (sides: number) => number {
  let rest = word >>> 0;
  return (sides) => {
    const side = rest % sides;
    rest = Math.floor(rest / sides);
    return side;
  };
}

function weight(roll: (sides: number) => number): Priority {
  return WEIGHTS[roll(WEIGHTS.length)] ?? Priority.NORMAL;
}

interface Step {
  readonly event: PoolEvent;
  readonly afterMs: number;
}

/** Derives a step from a random word: mostly calls, sometimes an expiry, rarely a close; 'replay' repeats a call. */
function stepOf(word: number): Step | 'replay' {
  const roll = dice(word);
  const kind = roll(16);
  const name = roll(9);
  const instance = name === 8 ? 'root' : `a${name}`;
  const afterMs = roll(4) === 0 ? roll(12) : 0;
  if (kind < 5) {
    const agent = { name: 'child', instance: `a${name % 8}` };
    const parent = { name: 'root', instance: 'root' };
    const depth = 1 + roll(3);
    return { event: { type: 'acquire', agent, parent, depth, priority: weight(roll) }, afterMs };
  }
  if (kind < 7) return { event: { type: 'release', instance }, afterMs };
  if (kind < 11) {
    const intent = INTENTS[roll(INTENTS.length)] ?? 'run';
    return { event: { type: 'renew', instance, epoch: BigInt(roll(3)), intent }, afterMs };
  }
  if (kind < 13)
    return { event: { type: 'reprioritize', instance, priority: weight(roll) }, afterMs };
  if (kind < 14) return 'replay';
  return { event: { type: roll(24) === 0 ? 'close' : 'expire' }, afterMs: afterMs + roll(9) };
}

/** Converts the outcome of `event` to the result that the model returns. */
function resultOf(event: PoolEvent, { outcome }: Reduced): string {
  const { member, refusal, renewal, released } = outcome;
  if (refusal !== undefined) return refusal.cap;
  if (renewal !== undefined) return renewal;
  if (released !== undefined) return released ? 'released' : 'nothing';
  if (member !== undefined) return WHERE[member.state];
  return event.type === 'close' ? 'closed' : 'expired';
}

const REASONS: Readonly<Record<string, string>> = {
  POOL_CLOSED: 'over',
  DEADLINE_PASSED: 'over',
  AGENT_RELEASED: 'final',
  AGENT_NOT_FOUND: 'unknown',
};

/** Applies `event`; an event that throws changes nothing but still ends expired leases. */
function step(pool: Pool, event: PoolEvent, at: number): { answer: string; reduced: Reduced } {
  const time = { at, leaseMs: LEASE_MS };
  try {
    const reduced = reduce(pool, event, time);
    return { answer: resultOf(event, reduced), reduced };
  } catch (error) {
    const answer = isWritError(error) ? REASONS[error.reason] : undefined;
    if (answer === undefined) throw error;
    return { answer, reduced: reduce(pool, { type: 'expire' }, time) };
  }
}

function poolText(pool: Pool): string {
  const members = [...pool.members.values()].map(
    ({ agent, state, priority, expiresAt = Number.POSITIVE_INFINITY, epoch }) =>
      `${agent.instance} ${WHERE[state]} ${priority} ${expiresAt} ${epoch}`,
  );
  const queue = queuedMembers(pool).map(({ agent }) => agent.instance);
  const counts = [pool.totalSpawns, pool.totalPauses, pool.totalRefusals];
  return [...members, `queue ${queue}`, `counts ${counts}`].join('\n');
}

function modelText(model: HeadcountModel): string {
  const { agents, spawns, pauses, refusals } = model;
  const members = agents.map(
    ({ id, where, weight, until, epoch }) => `${id} ${where} ${weight} ${until} ${epoch}`,
  );
  const counts = [spawns, pauses, refusals];
  return [...members, `queue ${model.queue().map(({ id }) => id)}`, `counts ${counts}`].join('\n');
}

/** Invariants that hold independently of the model. */
function assertInvariants(
  before: Pool,
  { pool, changes }: Reduced,
  model: HeadcountModel,
  at: number,
): void {
  const held = heldSlots(pool);
  // The cap (SB-6).
  if (held > pool.budget.maxAgents)
    throw new Error(`${held} of ${pool.budget.maxAgents} slots held`);
  const root = pool.members.get('root')?.state;
  if (!pool.closed && root !== 'active' && root !== 'suspended')
    throw new Error('the root lost its slot');
  // An active agent does not wait (EM-1).
  for (const { agent, state, wait } of pool.members.values())
    if (state === 'active' && wait !== undefined)
      throw new Error(`${agent.instance} is active and has a reported wait`);
  // Only a demoted agent is queued while a slot is free (SB-4, SB-5).
  const open = !pool.closed && !isPastDeadline(pool, at);
  if (open && held < pool.budget.maxAgents && model.queue().some(({ yielded }) => !yielded))
    throw new Error('an agent is queued although a slot is free');
  const beneficiaries = new Set<string>();
  for (const { agent, from, to, becauseOf } of changes) {
    if (to !== 'paused') continue;
    if (from !== 'active') throw new Error(`${agent.instance} was paused while ${from}`);
    if (becauseOf === undefined) continue;
    if (beneficiaries.has(becauseOf.instance)) throw new Error('two pauses for one agent');
    beneficiaries.add(becauseOf.instance);
    if (pool.members.get(becauseOf.instance)?.state !== 'active')
      throw new Error('a pause without a beneficiary');
  }
  if (pool.totalPauses - before.totalPauses !== changes.filter(({ to }) => to === 'paused').length)
    throw new Error('pauses miscounted');
}

function count(transitions: Map<string, number>, { changes }: Reduced): void {
  for (const { from, to, wait } of changes) {
    // A reported wait does not change the state of an agent.
    if (wait === 'began' && from === to) continue;
    const transition = `${from} → ${to}`;
    transitions.set(transition, (transitions.get(transition) ?? 0) + 1);
  }
}

describe('the pool of a run', () => {
  it('matches a plain model in 10,000 random schedules and never exceeds the cap (SB-1, SB-2, SB-3, SB-4, SB-5, SB-6, SB-7, SB-8)', () => {
    const transitions = new Map<string, number>();
    const schedule = fc.tuple(
      fc.integer({ min: 0, max: 2 ** 31 - 1 }),
      fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), {
        minLength: 12,
        maxLength: 36,
        size: 'max',
      }),
    );
    fc.assert(
      fc.property(schedule, ([seed, words]) => {
        const roll = dice(seed);
        const budget = {
          maxAgents: 1 + roll(5),
          allowPreempt: roll(5) > 0,
          ...(roll(4) === 0 ? { maxTotalSpawns: roll(9) } : {}),
          ...(roll(4) === 0 ? { maxDepth: roll(3) } : {}),
        };
        const deadline = roll(4) === 0 ? 20 + roll(60) : Number.POSITIVE_INFINITY;
        const priority = weight(roll);
        const root = { name: 'root', instance: 'root' };
        let at = 0;
        let pool = openPool(
          { root, priority, budget, ...(Number.isFinite(deadline) ? { deadline } : {}) },
          { at, leaseMs: LEASE_MS },
        );
        const model = new HeadcountModel(budget, priority, deadline, LEASE_MS);
        let last: PoolEvent = { type: 'expire' };
        for (const word of words) {
          const next = stepOf(word);
          const event: PoolEvent = next === 'replay' ? last : next.event;
          at += next === 'replay' ? 0 : next.afterMs;
          const before = pool;
          const { answer, reduced } = step(pool, event, at);
          const expected = model.apply(event, at);
          if (answer !== expected) expect(answer).toBe(expected);
          pool = reduced.pool;
          assertInvariants(before, reduced, model, at);
          last = event;
          if (poolText(pool) !== modelText(model)) expect(poolText(pool)).toBe(modelText(model));
          count(transitions, reduced);
        }
      }),
      { numRuns: SCHEDULES, seed: 20_260_101 },
    );
    // Checks that the schedules cover every transition.
    expect([...transitions.keys()].sort()).toEqual(TRANSITIONS);
    expect(Math.min(...transitions.values())).toBeGreaterThan(20);
  });
});
