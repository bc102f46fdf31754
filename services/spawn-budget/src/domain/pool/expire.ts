import type { Member } from './pool.ts';
import type { PoolDraft } from './pool-draft.ts';

/**
 * Ends expired leases and gives the slots to queued agents (SB-8). The root keeps its slot without a
 * lease (SB-1).
 */
export function expire(draft: PoolDraft): void {
  const expired: Member[] = [];
  for (const member of draft.pool.members.values())
    if (member.expiresAt !== undefined && member.expiresAt <= draft.at) expired.push(member);
  if (expired.length === 0) return;
  expired.sort((a, b) => a.order - b.order);
  for (const member of expired) {
    // After the end or the deadline of the run, slots do not end because of an expired lease, so no expiry time is
    // reported.
    const leaseExpiredAt = draft.over ? undefined : member.expiresAt;
    if (draft.isRoot(member)) draft.suspend(member, leaseExpiredAt);
    else draft.endLease(member, leaseExpiredAt);
  }
  draft.fill();
}
