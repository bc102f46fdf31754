import type { PoolDraft } from './draft.ts';
import type { Outcome, RenewEvent } from './events.ts';
import type { Member } from './pool.ts';

/**
 * What a worker's renewal does (SB-8): it keeps the lease of an agent that runs, leaves one that
 * sleeps its slot, and gets an agent whose lease lapsed a slot, or a place in line. A paused agent
 * stays where it is: only a slot that frees, or promotion, resumes it (SB-4).
 */
export function renew(draft: PoolDraft, { instance, epoch, intent }: RenewEvent): Outcome {
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
      sleep(draft, member);
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

function sleep(draft: PoolDraft, member: Member): void {
  if (member.state === 'active') draft.suspend(member);
  else if (member.state === 'waiting') {
    // A slot would be lost on an agent that sleeps; it comes back into line when it wakes.
    const { line: _, ...rest } = member;
    draft.put(rest);
  }
}

/** As an acquire would (SB-2), but where that is refused, the agent gets in line. */
function reacquire(draft: PoolDraft, member: Member): void {
  const victim = draft.hasRoom ? undefined : draft.victimBelow(member.priority);
  if (victim === undefined) queue(draft, member);
  else draft.replace(victim, member);
}

function queue(draft: PoolDraft, member: Member): void {
  if (draft.hasRoom) draft.activate(member);
  else if (member.line === undefined) draft.put({ ...member, line: draft.next() });
}
