import type { Halt } from './halt.ts';

/** A halt that is lifted, with the other halts over the same agent that were in force then. */
export interface EndedHalt {
  readonly orderedAt: Date;
  readonly liftedAt: Date;
  readonly others: readonly Pick<Halt, 'orderedAt'>[];
}

/**
 * The halted time that the lift of a halt adds to an approval which waits since `waitingSince`, in milliseconds. The
 * time from the order of another halt on is added when that one is lifted, so that all halts together add the time in
 * which any of them was in force (SV-5, SV-9).
 */
export function haltedMs({ orderedAt, liftedAt, others }: EndedHalt, waitingSince: Date): number {
  const from = Math.max(orderedAt.getTime(), waitingSince.getTime());
  const until = Math.min(liftedAt.getTime(), ...others.map((other) => other.orderedAt.getTime()));
  return Math.max(0, until - from);
}
