import { PreconditionError } from '@writ/kernel';

/** What a halt covers: everything, a tenant, a run or one agent of it (SV-9). */
export interface HaltScope {
  readonly tenant?: string;
  readonly runId?: string;
  readonly instance?: string;
}

/** Who or what may be halted: a tenant (for what has no run yet), a run, or an agent of it. */
export interface HaltSubject {
  readonly tenant: string;
  readonly runId?: string | undefined;
  readonly instance?: string | undefined;
}

/** One order to stop. */
export interface Halt {
  readonly haltId: string;
  readonly scope: HaltScope;
  /** Why, in the words of whoever ordered it. */
  readonly reason: string;
  readonly orderedBy: string;
  readonly orderedAt: Date;
  /** When it was lifted; null while it is in force. */
  readonly liftedAt: Date | null;
}

/** The one text of a scope, under which its halts are found. */
export function scopeKey({ tenant, runId, instance }: HaltScope): string {
  return [tenant, runId, instance].filter((part) => part !== undefined).join('/') || '*';
}

/** The texts of the scopes that cover a subject, the widest first; four, with the last ones repeated. */
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
 * The halts that are in force for a subject, the oldest first (SV-9): each stands by itself, so that
 * lifting one lifts no other.
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

/** The refusal that a halt is: by whom, and why (SV-9). */
export function haltedError({ haltId, scope, reason, orderedBy }: Halt): PreconditionError {
  return new PreconditionError('HALTED', `Halted by ${orderedBy}: ${reason}`, {
    halt_id: haltId,
    halted_by: orderedBy,
    scope: scopeKey(scope),
  });
}
