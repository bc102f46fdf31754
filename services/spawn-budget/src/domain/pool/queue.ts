import type { Member, Pool } from './pool.ts';

/** Queued agents: highest priority first, then the longest queued (SB-4). */
export function queuedMembers(pool: Pool): Member[] {
  return [...pool.members.values()]
    .filter(({ queuePosition }) => queuePosition !== undefined)
    .sort((a, b) => b.priority - a.priority || (a.queuePosition ?? 0) - (b.queuePosition ?? 0));
}
