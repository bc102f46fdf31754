import type { PoolDraft } from './draft.ts';

/**
 * Lets leases lapse whose time has come, and gives the slots to those in line (SB-8). The root keeps
 * its slot without a lease (SB-1).
 */
export function expire(draft: PoolDraft): void {
  const lapsed = [...draft.pool.members.values()]
    .filter(({ expiresAt }) => expiresAt !== undefined && expiresAt <= draft.at)
    .sort((a, b) => a.order - b.order);
  if (lapsed.length === 0) return;
  for (const member of lapsed) {
    // Past the run's deadline it was no lease that lapsed.
    const lapsedAt = draft.over ? undefined : member.expiresAt;
    if (draft.isRoot(member)) draft.suspend(member, lapsedAt);
    else draft.lapse(member, lapsedAt);
  }
  draft.fill();
}
