import { isOfWrongClock } from '../clock/wrong-clock.ts';

/**
 * Last known pause or resumption of an agent (SB-4). Each time is a time on the clock of spawn-budget, or the time of
 * the request that caused the change, which is slightly earlier.
 */
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
 * Returns the state after a change. A change that is older than the last one is ignored, because changes arrive both in
 * responses and as events. A time that a wrong clock recorded is replaced by the current time, so that later changes do
 * not seem older (BD-3).
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
 * Whether the agent is rejected because it is paused. A grant that expires more than {@link GRANT_LIFE_MS} after the
 * pause was signed after the pause, so the agent has a slot again and only the event of its resumption is late. If a
 * wrong clock recorded the pause, any presented grant ends the pause (BD-3).
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
