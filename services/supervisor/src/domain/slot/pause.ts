/** What the supervisor knows of an agent's slot (SB-4). Times are spawn-budget's, or a little earlier. */
export interface SlotKnowledge {
  /** Since when the agent is paused; null while it is not. */
  readonly pausedSince: Date | null;
  /** When it was paused or resumed last; null when it never was. */
  readonly changedAt: Date | null;
}

/** Longest life of a slot grant, in milliseconds (SB-4). */
const GRANT_LIFE_MS = 5_000;

/**
 * What is known after a change at `at`. News travels two ways, in answers and as events, so an older
 * change may come after a newer one: it changes nothing.
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
 * Whether an agent may not act because it is paused. A grant that outlives every one that was signed
 * before the pause was signed after it: the agent has its slot back, and the news of that is late.
 * @param grantExpiresAt of the slot grant that the agent shows; undefined when it shows none
 */
export function pauseHolds({ pausedSince }: SlotKnowledge, grantExpiresAt?: Date): boolean {
  if (pausedSince === null) return false;
  if (grantExpiresAt === undefined) return true;
  return grantExpiresAt.getTime() <= pausedSince.getTime() + GRANT_LIFE_MS;
}
