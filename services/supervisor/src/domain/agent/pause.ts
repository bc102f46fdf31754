import { isOfWrongClock } from '../clock/wrong-clock.ts';

/** What is known of an agent's slot (SB-4). Times are those of spawn-budget, or slightly earlier. */
export interface SlotKnowledge {
  /** Null while the agent is not paused. */
  readonly pausedSince: Date | null;
  /** Time of the last pause or resumption; null when there was none. */
  readonly changedAt: Date | null;
}

/** A pause or resumption of an agent. */
export interface SlotChange {
  readonly change: 'paused' | 'resumed';
  /** Time on spawn-budget's clock, or of the request that caused the change. */
  readonly at: Date;
}

/** Longest life of a slot grant, in milliseconds (SB-4). */
const GRANT_LIFE_MS = 5_000;

/**
 * The state after a change at `at`. Changes arrive in responses and as events, so an older one may arrive after a
 * newer one: it is ignored. A time that a wrong clock gave counts as now, so that no later change seems older (BD-3).
 */
export function afterSlotChange(
  known: SlotKnowledge,
  { change, at }: SlotChange,
  now: Date,
): SlotKnowledge {
  const { changedAt } = known;
  const when = isOfWrongClock(at, now) ? now : at;
  const isOlder = changedAt !== null && when < changedAt && !isOfWrongClock(changedAt, now);
  if (isOlder) return known;
  return { pausedSince: change === 'paused' ? when : null, changedAt: when };
}

/**
 * Whether the agent is rejected because it is paused. A grant that expires later than all grants signed before the
 * pause was signed after it: the agent has a slot again, and the event is late. When a wrong clock gave the time of the
 * pause, a current grant decides (BD-3).
 * @param grantExpiresAt expiry of the presented slot grant; undefined without one
 */
export function pauseHolds(
  { pausedSince }: SlotKnowledge,
  grantExpiresAt: Date | undefined,
  now: Date,
): boolean {
  if (pausedSince === null) return false;
  if (grantExpiresAt === undefined) return true;
  if (isOfWrongClock(pausedSince, now)) return false;
  return grantExpiresAt.getTime() <= pausedSince.getTime() + GRANT_LIFE_MS;
}
