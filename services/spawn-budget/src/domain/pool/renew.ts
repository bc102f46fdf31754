import type { Outcome, RenewEvent } from './events.ts';
import type { Member } from './pool.ts';
import type { PoolDraft } from './pool-draft.ts';
import { victimBelow } from './preempt.ts';

/**
 * Applies a worker's renewal (SB-8): extends the lease of a running agent, keeps the slot of a suspended agent, and
 * gives a slot to an agent whose lease expired, or queues the agent. A paused agent stays paused until it gets a slot
 * from the queue or by a promotion (SB-4).
 */
export function renew(
  draft: PoolDraft,
  { instance, epoch, intent, waitingFor = [] }: RenewEvent,
): Outcome {
  const known = draft.get(instance);
  if (known === undefined) return { renewal: 'UNKNOWN_AGENT' };
  if (known.state === 'released') return { member: known };
  if (epoch < known.epoch) return { renewal: 'STALE_EPOCH' };
  const member = epoch === known.epoch ? known : draft.put({ ...known, epoch });
  if (draft.over) return { member };
  switch (intent) {
    case 'run':
      run(draft, member);
      break;
    case 'suspend':
      // The wait of a paused agent is ignored, because its worker reports the wait again when the agent is resumed.
      if (member.state !== 'paused') suspend(draft, draft.wait(member, waitingFor));
      break;
    case 'park':
      if (member.state === 'waiting') queue(draft, member);
      break;
  }
  return { member };
}

function run(draft: PoolDraft, member: Member): void {
  if (member.state === 'active') draft.extend(member);
  else if (member.state === 'suspended') draft.activate(member);
  else if (member.state === 'waiting') reacquire(draft, member);
}

function suspend(draft: PoolDraft, member: Member): void {
  if (member.state === 'active') draft.suspend(member);
  else if (member.state === 'waiting') {
    // An agent that suspends without a slot leaves the queue; it can be queued again when it runs.
    const { queuePosition: _, ...rest } = member;
    draft.put(rest);
  }
}

/**
 * Gives the agent a free slot or the slot of an agent of lower priority, as an acquire does (SB-2); if there is none,
 * queues the agent.
 */
function reacquire(draft: PoolDraft, member: Member): void {
  const victim = draft.hasFreeSlot ? undefined : victimBelow(draft, member.priority);
  if (victim === undefined) queue(draft, member);
  else draft.replace(victim, member);
}

function queue(draft: PoolDraft, member: Member): void {
  if (draft.hasFreeSlot) draft.activate(member);
  else if (member.queuePosition === undefined) {
    draft.put({ ...member, queuePosition: draft.next() });
  }
}
