import { type ErrorMetadata, PreconditionError } from '@writ/kernel';

/** What a freeze covers: everything, a tenant, a run or an agent. */
export interface FreezeScope {
  readonly tenant?: string;
  readonly runId?: string;
  readonly agentInstance?: string;
}

/** Why something is frozen. */
export type FreezeCause = 'halt' | 'cancel' | 'deadline' | 'end';

/** An order in force. */
export interface Freeze {
  readonly orderId: string;
  readonly cause: FreezeCause;
  /** One sentence for whoever is refused. */
  readonly reason: string;
  readonly orderedBy: string;
}

/** The agent that a call belongs to. */
export interface AgentKey {
  readonly tenant: string;
  readonly runId: string;
  readonly agentInstance: string;
}

/** The one text of a scope, under which freezes are found. */
export function scopeKey({ tenant, runId, agentInstance }: FreezeScope): string {
  return [tenant, runId, agentInstance].filter((part) => part !== undefined).join('/') || '*';
}

/** The one text of an agent; also that of the scope that covers it alone. */
export function agentText({ tenant, runId, agentInstance }: AgentKey): string {
  return `${tenant}/${runId}/${agentInstance}`;
}

/** The scopes that cover an agent. */
export function scopesOver(
  agent: AgentKey,
): readonly [everything: string, tenant: string, run: string, agent: string] {
  const { tenant, runId } = agent;
  return ['*', tenant, `${tenant}/${runId}`, agentText(agent)];
}

/** Whether a scope covers an agent. */
export function covers(scope: FreezeScope, agent: AgentKey): boolean {
  return scopesOver(agent).includes(scopeKey(scope));
}

/** The refusal that a freeze is: HALTED for the kill switch, else FROZEN (SUP-8, SV-9). */
export function frozenError({ orderId, cause, reason, orderedBy }: Freeze): PreconditionError {
  const metadata: ErrorMetadata = { order_id: orderId, cause };
  const by = orderedBy === '' ? '' : ` by ${orderedBy}`;
  return cause === 'halt'
    ? new PreconditionError('HALTED', `Halted${by}: ${reason}`, metadata)
    : new PreconditionError('FROZEN', `Frozen${by} (${cause}): ${reason}`, metadata);
}

/** The freeze to name when several are in force: a halt before all others, then the first. */
export function strongest(freezes: readonly Freeze[]): Freeze | undefined {
  return freezes.find(({ cause }) => cause === 'halt') ?? freezes[0];
}
