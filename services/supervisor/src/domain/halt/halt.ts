import { covers, PreconditionError, type Scope, type ScopeSubject, scopeKey } from '@writ/kernel';

/** One halt. */
export interface Halt {
  readonly haltId: string;
  readonly scope: Scope;
  /** The reason that the person gave. */
  readonly reason: string;
  readonly orderedBy: string;
  readonly orderedAt: Date;
  /** Null while the halt is in force. */
  readonly liftedAt: Date | null;
}

/**
 * The halts in force for a subject, the oldest first (SV-9). Each halt is independent: lifting a halt does not lift
 * other halts.
 */
export function haltsCovering<H extends Halt>(halts: readonly H[], subject: ScopeSubject): H[] {
  return halts
    .filter(({ scope, liftedAt }) => liftedAt === null && covers(scope, subject))
    .sort(inOrder);
}

function inOrder(left: Halt, right: Halt): number {
  const byTime = left.orderedAt.getTime() - right.orderedAt.getTime();
  return byTime === 0 ? (left.haltId < right.haltId ? -1 : 1) : byTime;
}

/** The error for a halted subject: who ordered the halt, and why (SV-9). */
export function haltedError({ haltId, scope, reason, orderedBy }: Halt): PreconditionError {
  return new PreconditionError('HALTED', `Halted by ${orderedBy}: ${reason}`, {
    halt_id: haltId,
    halted_by: orderedBy,
    scope: scopeKey(scope),
  });
}
