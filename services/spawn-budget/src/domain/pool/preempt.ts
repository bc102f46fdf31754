import { Priority } from '@writ/kernel';
import type { Member } from './pool.ts';
import type { PoolDraft } from './pool-draft.ts';

/**
 * Returns the agent to preempt: the active agent with the lowest priority strictly below `priority`; among equal
 * priorities, the agent that acquired its slot first. Never returns the root; returns undefined if `priority` is NORMAL
 * or lower, or if the pool does not allow preemption (SB-2). A suspended agent keeps its slot (SB-8).
 */
export function victimBelow(draft: PoolDraft, priority: Priority): Member | undefined {
  const { pool } = draft;
  if (priority <= Priority.NORMAL || !pool.budget.allowPreempt) return undefined;
  return [...pool.members.values()]
    .filter((member) => member.state === 'active' && !draft.isRoot(member))
    .filter((member) => member.priority < priority)
    .sort((a, b) => a.priority - b.priority || a.order - b.order)
    .at(0);
}
