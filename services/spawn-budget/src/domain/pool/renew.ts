import type { Outcome, RenewEvent } from './events.ts';
import type { Member } from './pool.ts';
import type { PoolDraft } from './pool-draft.ts';
import { victimBelow } from './preempt.ts';

/**
 * Applies a worker's renewal (SB-8): extends the lease of a running agent, keeps the slot of a suspended one, and
 * gives an agent whose lease expired a slot or queues it. A paused agent stays paused until a slot is free or it
 * is promoted (SB-4).
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
      // A paused agent is parked, and reports its wait again when it is resumed.
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
    // A suspended agent needs no slot; it is queued again when it wakes.
    const { queuePosition: _, ...rest } = member;
    draft.put(rest);
  }
}

/** Like an acquire (SB-2), but the agent is queued instead of refused. */
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
