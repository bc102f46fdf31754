/** What is known of an agent's slot (SB-4). Times are those of spawn-budget, or slightly earlier. */
export interface SlotKnowledge {
  /** Null while the agent is not paused. */
  readonly pausedSince: Date | null;
  /** Time of the last pause or resumption; null when there was none. */
  readonly changedAt: Date | null;
}

/** Longest life of a slot grant, in milliseconds (SB-4). */
const GRANT_LIFE_MS = 5_000;

/**
 * The state after a change at `at`. Changes arrive in responses and as events, so an older one may arrive after a
 * newer one: it is ignored.
 */
export function afterSlotChange(
  known: SlotKnowledge,
  change: 'paused' | 'resumed',
  at: Date,
): SlotKnowledge {
  if (known.changedAt !== null && at < known.changedAt) return known;
  return { pausedSince: change === 'paused' ? at : null, changedAt: at };
}

/**
 * Whether the agent is rejected because it is paused. A grant that expires later than all grants signed before the
 * pause was signed after it: the agent has a slot again, and the event is late.
 * @param grantExpiresAt expiry of the presented slot grant; undefined without one
 */
export function pauseHolds({ pausedSince }: SlotKnowledge, grantExpiresAt?: Date): boolean {
  if (pausedSince === null) return false;
  if (grantExpiresAt === undefined) return true;
  return grantExpiresAt.getTime() <= pausedSince.getTime() + GRANT_LIFE_MS;
}
