import { PreconditionError } from '@writ/kernel';

/** The scope of a halt: everything, a tenant, a run or one agent (SV-9). */
export interface HaltScope {
  readonly tenant?: string;
  readonly runId?: string;
  readonly instance?: string;
}

/** What may be halted: a tenant (for work without a run), a run, or an agent. */
export interface HaltSubject {
  readonly tenant: string;
  readonly runId?: string | undefined;
  readonly instance?: string | undefined;
}

/** One halt. */
export interface Halt {
  readonly haltId: string;
  readonly scope: HaltScope;
  /** The reason that the person gave. */
  readonly reason: string;
  readonly orderedBy: string;
  readonly orderedAt: Date;
  /** Null while the halt is in force. */
  readonly liftedAt: Date | null;
}

/** The text form of a scope, used as a lookup key. */
export function scopeKey({ tenant, runId, instance }: HaltScope): string {
  return [tenant, runId, instance].filter((part) => part !== undefined).join('/') || '*';
}

/** The keys of the scopes that cover a subject, the widest first; always four, the last ones repeated. */
export function scopesOver({
  tenant,
  runId,
  instance,
}: HaltSubject): readonly [everything: string, tenant: string, run: string, agent: string] {
  const run = runId === undefined ? tenant : `${tenant}/${runId}`;
  return ['*', tenant, run, instance === undefined ? run : `${run}/${instance}`];
}

/** Whether a scope covers a subject. */
export function covers(scope: HaltScope, subject: HaltSubject): boolean {
  return scopesOver(subject).includes(scopeKey(scope));
}

/**
 * The halts in force for a subject, the oldest first (SV-9). Each halt is independent: lifting one lifts no other.
 */
export function haltsOver<H extends Halt>(halts: readonly H[], subject: HaltSubject): H[] {
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
