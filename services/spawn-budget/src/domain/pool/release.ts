import type { Outcome, ReleaseEvent } from './events.ts';
import type { PoolDraft } from './pool-draft.ts';

/**
 * Releases an agent and gives its slot to the first queued agent (SB-3, SB-4). The call changes nothing for the root, a
 * released agent or an unknown agent. Releasing an agent without a slot frees no slot (SB-6), but a slot that has been
 * free since a demotion is then given to the first queued agent, if any (SB-5).
 */
export function release(draft: PoolDraft, { instance }: ReleaseEvent): Outcome {
  const member = draft.get(instance);
  if (member === undefined || member.state === 'released' || draft.isRoot(member))
    return { released: false };
  draft.release(member);
  draft.fill();
  return { released: true, member };
}

/** Releases every agent including the root, because the run has ended. Closing a closed pool changes nothing. */
export function close(draft: PoolDraft): Outcome {
  draft.close();
  for (const member of draft.pool.members.values())
    if (member.state !== 'released') draft.release(member);
  return {};
}
