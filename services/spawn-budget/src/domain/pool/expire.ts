import type { PoolDraft } from './draft.ts';
import type { Member } from './pool.ts';

/**
 * Lets leases lapse whose time has come, and gives the slots to those in line (SB-8). The root keeps
 * its slot without a lease (SB-1).
 */
export function expire(draft: PoolDraft): void {
  const lapsed: Member[] = [];
  for (const member of draft.pool.members.values())
    if (member.expiresAt !== undefined && member.expiresAt <= draft.at) lapsed.push(member);
  if (lapsed.length === 0) return;
  lapsed.sort((a, b) => a.order - b.order);
  for (const member of lapsed) {
    // Past the run's deadline it was no lease that lapsed.
    const lapsedAt = draft.over ? undefined : member.expiresAt;
    if (draft.isRoot(member)) draft.suspend(member, lapsedAt);
    else draft.lapse(member, lapsedAt);
  }
  draft.fill();
}
