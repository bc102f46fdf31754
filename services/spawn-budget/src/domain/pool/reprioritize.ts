import { NotFoundError, Priority } from '@writ/kernel';
import { refuseOver, releasedError } from './acquire.ts';
import type { PoolDraft } from './draft.ts';
import type { Outcome, ReprioritizeEvent } from './events.ts';
import { inLine, type Member } from './pool.ts';

/**
 * Changes an agent's weight (SB-5). Demoting an active agent below NORMAL in a full pool pauses it;
 * promoting a paused one to NORMAL or above resumes it if it can hold a slot.
 * @throws NotFoundError AGENT_NOT_FOUND; PreconditionError POOL_CLOSED, DEADLINE_PASSED, AGENT_RELEASED
 */
export function reprioritize(draft: PoolDraft, { instance, priority }: ReprioritizeEvent): Outcome {
  refuseOver(draft);
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
  // The root is never paused (SB-1), and one that sleeps keeps its slot (SB-8).
  if (member.state !== 'active' || draft.isRoot(member) || draft.hasRoom) return;
  const [next] = inLine(draft.pool);
  if (next !== undefined) {
    draft.replace(member, next);
  } else if (draft.isOtherActive(member)) {
    // Its slot stays free: the next release gives it one again, and the next acquire may take it.
    draft.pause(member);
  }
}

function promote(draft: PoolDraft, member: Member): void {
  if (draft.hasRoom) {
    draft.activate(member);
    return;
  }
  const victim = draft.victimBelow(member.priority);
  // Below zero and falling: before everybody of its weight, the last promoted first.
  if (victim === undefined) draft.put({ ...member, line: -draft.next() });
  else draft.replace(victim, member);
}
