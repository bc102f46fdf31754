import type { Halt } from './halt.ts';

/** A lifted halt, with the other halts of the same agent that were in force when it was lifted. */
export interface EndedHalt {
  readonly orderedAt: Date;
  readonly liftedAt: Date;
  readonly others: readonly Pick<Halt, 'orderedAt'>[];
}

/**
 * Returns the time, in milliseconds, by which lifting a halt extends an approval that has been waiting since
 * `waitingSince`. Time since another halt was ordered is added when that halt is lifted, so that together the halts add
 * exactly the time in which at least one of them was in force (SV-5, SV-9).
 */
export function haltedMs({ orderedAt, liftedAt, others }: EndedHalt, waitingSince: Date): number {
  const from = Math.max(orderedAt.getTime(), waitingSince.getTime());
  const until = Math.min(liftedAt.getTime(), ...others.map((other) => other.orderedAt.getTime()));
  return Math.max(0, until - from);
}
