import { PreconditionError, Priority, priorityName } from '@writ/kernel';
import type { AcquireEvent, Outcome, Refusal } from './events.ts';
import { heldSlots, type Pool } from './pool.ts';
import type { PoolDraft } from './pool-draft.ts';
import { victimBelow } from './preempt.ts';

/**
 * Acquires a free slot, or the slot of an agent of lower priority (SB-2, SB-7). For an agent that is already a member,
 * returns its current state.
 * @throws PreconditionError POOL_CLOSED, DEADLINE_PASSED; AGENT_RELEASED, because a release is final
 */
export function acquire(draft: PoolDraft, event: AcquireEvent): Outcome {
  assertRunning(draft);
  const known = draft.get(event.agent.instance);
  if (known?.state === 'released') throw releasedError(known.agent.instance);
  if (known !== undefined) return { member: known };
  const refusal = lifetimeRefusal(draft.pool, event) ?? makeSlotAvailable(draft, event);
  if (refusal !== undefined) {
    draft.count('totalRefusals');
    return { refusal };
  }
  const { agent, parent, depth, priority } = event;
  draft.count('totalSpawns');
  const member = draft.put({
    agent,
    parent,
    depth,
    priority,
    state: 'active',
    order: draft.next(),
    epoch: 0n,
    acquiredAt: draft.at,
  });
  return { member: draft.extend(member) };
}

/**
 * Checks that the run has not ended or passed its deadline.
 * @throws PreconditionError POOL_CLOSED, DEADLINE_PASSED
 */
export function assertRunning(draft: PoolDraft): void {
  if (draft.pool.closed)
    throw new PreconditionError('POOL_CLOSED', 'The run has ended: its pool is closed.');
  if (draft.over)
    throw new PreconditionError(
      'DEADLINE_PASSED',
      `The deadline of the run was ${new Date(draft.pool.deadline ?? 0).toISOString()}; no slot is granted after it.`,
    );
}

/** The error for a released agent. */
export function releasedError(instance: string): PreconditionError {
  return new PreconditionError(
    'AGENT_RELEASED',
    `Agent ${instance} was released, which is final; a new agent needs a new instance name.`,
    { agent_instance: instance },
  );
}

function lifetimeRefusal(
  { budget: { maxDepth, maxTotalSpawns }, totalSpawns }: Pool,
  { depth }: AcquireEvent,
): Refusal | undefined {
  if (maxDepth !== undefined && depth > maxDepth)
    return {
      cap: 'max_depth',
      why: 'too_deep',
      used: depth,
      limit: maxDepth,
      sentence: `Spawn budget exceeded: an agent at depth ${depth} exceeds max_depth ${maxDepth}.`,
    };
  if (maxTotalSpawns !== undefined && totalSpawns >= maxTotalSpawns)
    return {
      cap: 'max_total_spawns',
      why: 'spawns_used_up',
      used: totalSpawns,
      limit: maxTotalSpawns,
      sentence: `Spawn budget exceeded: ${totalSpawns} agents were spawned in this run; max_total_spawns is ${maxTotalSpawns}.`,
    };
  return undefined;
}

/** Makes a slot available, pausing an agent of lower priority if allowed (SB-2). */
function makeSlotAvailable(
  draft: PoolDraft,
  { agent, priority }: AcquireEvent,
): Refusal | undefined {
  if (draft.hasFreeSlot) return undefined;
  const victim = victimBelow(draft, priority);
  if (victim !== undefined) {
    draft.pause(victim, agent);
    return undefined;
  }
  return fullRefusal(draft.pool, priority);
}

function fullRefusal(pool: Pool, priority: Priority): Refusal {
  const { maxAgents, allowPreempt } = pool.budget;
  const used = heldSlots(pool);
  const refusal = (why: Refusal['why'], reason: string): Refusal => ({
    cap: 'max_agents',
    why,
    used,
    limit: maxAgents,
    sentence: `Spawn budget exceeded: all ${maxAgents} slots of the run (max_agents) are held, and ${reason}.`,
  });
  if (priority <= Priority.NORMAL)
    return refusal('full', `a ${priorityName(priority)} agent cannot preempt`);
  if (!allowPreempt) return refusal('preemption_off', 'preemption is disabled (allow_preempt)');
  return refusal(
    'no_lower_priority',
    `no active agent except the root, which is never preempted, has a priority below ${priorityName(priority)}`,
  );
}
