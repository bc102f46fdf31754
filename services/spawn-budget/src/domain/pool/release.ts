import type { PoolDraft } from './draft.ts';
import type { Outcome, ReleaseEvent } from './events.ts';

/**
 * Ends an agent's membership and gives its slot to the first in line (SB-3, SB-4). The root, a
 * released agent and an unknown one: nothing changes. One without a slot frees none (SB-6), yet a
 * slot that a demotion left free is given on now (SB-5).
 */
export function release(draft: PoolDraft, { instance }: ReleaseEvent): Outcome {
  const member = draft.get(instance);
  if (member === undefined || member.state === 'released' || draft.isRoot(member))
    return { released: false };
  draft.release(member);
  draft.fill();
  return { released: true, member };
}

/** Releases everybody, the root too: the run is over. Closing twice changes nothing. */
export function close(draft: PoolDraft): Outcome {
  draft.close();
  for (const member of draft.pool.members.values())
    if (member.state !== 'released') draft.release(member);
  return {};
}
