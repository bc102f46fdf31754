import { NotFoundError, Priority } from '@writ/kernel';
import { assertRunning, releasedError } from './acquire.ts';
import type { Outcome, ReprioritizeEvent } from './events.ts';
import type { Member } from './pool.ts';
import type { PoolDraft } from './pool-draft.ts';
import { victimBelow } from './preempt.ts';
import { queuedMembers } from './queue.ts';

/**
 * Changes an agent's priority (SB-5). Demoting an active agent below NORMAL in a full pool pauses it, except the root,
 * and except the only active agent of a pool without queued agents. Promoting a paused agent to NORMAL or above resumes
 * it if a slot is free or an agent of lower priority can be paused; otherwise it becomes the first of its priority in
 * the queue.
 * @throws NotFoundError AGENT_NOT_FOUND; PreconditionError POOL_CLOSED, DEADLINE_PASSED, AGENT_RELEASED
 */
export function reprioritize(draft: PoolDraft, { instance, priority }: ReprioritizeEvent): Outcome {
  assertRunning(draft);
  const before = draft.get(instance);
  if (before === undefined)
    throw new NotFoundError('AGENT_NOT_FOUND', `The run's pool has no agent ${instance}.`, {
      agent_instance: instance,
    });
  if (before.state === 'released') throw releasedError(instance);
  if (before.priority === priority) return { member: before };
  const member = draft.put({ ...before, priority });
  const demoted = priority < before.priority;
  if (demoted && priority < Priority.NORMAL) demote(draft, member);
  if (!demoted && priority >= Priority.NORMAL && member.state === 'paused') promote(draft, member);
  return { member };
}

function demote(draft: PoolDraft, member: Member): void {
  // The root is never paused (SB-1), and a suspended agent keeps its slot (SB-8).
  if (member.state !== 'active' || draft.isRoot(member) || draft.hasFreeSlot) return;
  const [next] = queuedMembers(draft.pool);
  if (next !== undefined) {
    draft.replace(member, next);
  } else if (draft.isOtherActive(member)) {
    // The slot stays free until the next acquire, or the next renewal of a waiting agent, uses it; after a release or
    // an expired lease, the first queued agent gets it.
    draft.pause(member);
  }
}

function promote(draft: PoolDraft, member: Member): void {
  if (draft.hasFreeSlot) {
    draft.activate(member);
    return;
  }
  const victim = victimBelow(draft, member.priority);
  // The position is negative and decreasing, so that the agent precedes all agents of its priority, including those
  // promoted earlier.
  if (victim === undefined) draft.put({ ...member, queuePosition: -draft.next() });
  else draft.replace(victim, member);
}
