import type { Member, Pool } from './pool.ts';

/**
 * Returns the queued agents, highest priority first. Among equal priorities, promoted agents precede the others, the
 * last promoted first; the others are in the order in which they were queued (SB-4, SB-5).
 */
export function queuedMembers(pool: Pool): Member[] {
  return [...pool.members.values()]
    .filter(({ queuePosition }) => queuePosition !== undefined)
    .sort((a, b) => b.priority - a.priority || (a.queuePosition ?? 0) - (b.queuePosition ?? 0));
}
