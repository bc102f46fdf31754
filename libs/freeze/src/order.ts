import { HistoryRetention, PreconditionError, type Scope } from '@writ/kernel';

/** Cause of a freeze (SV-9, SUP-8). */
export type FreezeCause = 'halt' | 'cancel' | 'deadline' | 'end';

/** An order that freezes a scope until it is lifted. */
export interface FreezeOrder {
  readonly orderId: string;
  readonly scope: Scope;
  readonly cause: FreezeCause;
  /** One sentence for rejected callers. */
  readonly reason: string;
  readonly orderedBy: string;
  readonly orderedAt: Date;
  /** Retention of recorded payloads; null when the order does not set it. */
  readonly retention: HistoryRetention | null;
}

/** Whether an order purges the payloads recorded in its scope (SUP-4). */
export function purges({ cause, retention }: Pick<FreezeOrder, 'cause' | 'retention'>): boolean {
  const isKept = retention === null || retention === HistoryRetention.PERMANENT;
  return cause === 'end' && !isKept;
}

/** Returns the error of a frozen call: HALTED for a halt, otherwise FROZEN (SUP-8, SV-9). */
export function frozenError({
  orderId,
  cause,
  reason,
  orderedBy,
}: Pick<FreezeOrder, 'orderId' | 'cause' | 'reason' | 'orderedBy'>): PreconditionError {
  const metadata = { order_id: orderId, cause };
  const by = orderedBy === '' ? '' : ` by ${orderedBy}`;
  return cause === 'halt'
    ? new PreconditionError('HALTED', `Halted${by}: ${reason}`, metadata)
    : new PreconditionError('FROZEN', `Frozen${by} (${cause}): ${reason}`, metadata);
}
