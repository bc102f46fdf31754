import { NotFoundError, PermissionDeniedError, type Scope } from '@writ/kernel';

/** A person with the rights to halt. */
export interface HaltingPerson {
  readonly tenant: string;
  /** Whether the person may act for all tenants. */
  readonly isOperator: boolean;
}

/** A halt with the tenant of the person who ordered it. */
export interface OwnedHalt {
  readonly haltId: string;
  readonly scope: Scope;
  readonly orderedFor: string;
}

/**
 * Checks that a person may halt a scope: an admin may halt scopes of their own tenant, an operator every scope. For an
 * admin, runs of other tenants are reported as not found (SYS-6).
 * @throws PermissionDeniedError OPERATOR_REQUIRED; NotFoundError RUN_NOT_FOUND
 */
export function assertMayHalt(person: HaltingPerson, { tenant, runId }: Scope): void {
  if (person.isOperator || tenant === person.tenant) return;
  if (runId !== undefined) {
    throw new NotFoundError('RUN_NOT_FOUND', `Run ${runId} does not exist.`, { run_id: runId });
  }
  throw operatorRequired(
    tenant === undefined
      ? 'Halting everything requires the role operator.'
      : 'Halting another tenant requires the role operator.',
  );
}

/** Whether a person may see a halt: an admin sees the halts that cover their own tenant, an operator every halt. */
export function maySeeHalt(person: HaltingPerson, { scope }: Pick<OwnedHalt, 'scope'>): boolean {
  return person.isOperator || scope.tenant === undefined || scope.tenant === person.tenant;
}

/**
 * Checks that a person may lift a halt: an admin may lift a halt of their own tenant that was ordered by a person of
 * that tenant, an operator may lift every halt.
 * @throws NotFoundError HALT_NOT_FOUND for halts of other tenants; PermissionDeniedError OPERATOR_REQUIRED
 */
export function assertMayLift(person: HaltingPerson, halt: OwnedHalt): void {
  if (!maySeeHalt(person, halt)) throw haltNotFound(halt.haltId);
  if (person.isOperator) return;
  if (halt.scope.tenant === person.tenant && halt.orderedFor === person.tenant) return;
  throw operatorRequired(`Lifting halt ${halt.haltId} requires the role operator.`);
}

/** Returns the error for a halt that does not exist or that the reader may not see. */
export function haltNotFound(haltId: string): NotFoundError {
  return new NotFoundError('HALT_NOT_FOUND', `Halt ${haltId} does not exist.`, { halt_id: haltId });
}

function operatorRequired(sentence: string): PermissionDeniedError {
  return new PermissionDeniedError('OPERATOR_REQUIRED', sentence, { roles: 'operator' });
}
