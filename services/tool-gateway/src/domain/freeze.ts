import { HistoryRetention, PreconditionError } from '@writ/kernel';

/** What an order freezes: everything, a tenant, a run or an agent. */
export interface FreezeScope {
  readonly tenant?: string;
  readonly runId?: string;
  readonly agentInstance?: string;
}

/** Why something is frozen (SV-9, SUP-8). */
export type FreezeCause = 'halt' | 'cancel' | 'deadline' | 'end';

/** An order that stops a scope until it is lifted. */
export interface FreezeOrder {
  readonly orderId: string;
  readonly scope: FreezeScope;
  readonly cause: FreezeCause;
  /** One sentence for whoever is refused. */
  readonly reason: string;
  readonly orderedBy: string;
  readonly orderedAt: Date;
  /** What becomes of recorded results; null unless the order says so. */
  readonly retention: HistoryRetention | null;
}

/** The agent that a freeze may stop. */
export interface FreezeSubject {
  readonly tenant: string;
  readonly runId: string;
  readonly agentInstance: string;
}

/** The one text of a scope, under which its orders are found. */
export function scopeKey({ tenant, runId, agentInstance }: FreezeScope): string {
  return [tenant, runId, agentInstance].filter((part) => part !== undefined).join('/') || '*';
}

/** The keys of the scopes that cover an agent. */
export function scopesOver({
  tenant,
  runId,
  agentInstance,
}: FreezeSubject): readonly [everything: string, tenant: string, run: string, agent: string] {
  return ['*', tenant, `${tenant}/${runId}`, `${tenant}/${runId}/${agentInstance}`];
}

/** Whether an order of this scope stops the agent. */
export function covers(scope: FreezeScope, subject: FreezeSubject): boolean {
  return scopesOver(subject).includes(scopeKey(scope));
}

/** Whether results that were recorded within the order's scope are deleted (SUP-4). */
export function purges({ cause, retention }: Pick<FreezeOrder, 'cause' | 'retention'>): boolean {
  const kept = retention === null || retention === HistoryRetention.PERMANENT;
  return cause === 'end' && !kept;
}

/** What a frozen call is refused with; it leaves no receipt and burns nothing (TG-8). */
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
