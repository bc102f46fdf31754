import { NotFoundError, PermissionDeniedError } from '@writ/kernel';
import type { HaltScope } from './halt.ts';

/** A person as far as halts are concerned. */
export interface HaltingPerson {
  readonly tenant: string;
  /** May act for every tenant, and for all of them at once. */
  readonly isOperator: boolean;
}

/** Where a halt belongs: what it covers, and for which tenant the one acted who ordered it. */
export interface OwnedHalt {
  readonly haltId: string;
  readonly scope: HaltScope;
  readonly orderedFor: string;
}

/**
 * Checks who may halt a scope: an admin what belongs to the own tenant, an operator everything. The
 * runs of others do not exist for an admin (SYS-6).
 * @throws PermissionDeniedError OPERATOR_REQUIRED; NotFoundError RUN_NOT_FOUND
 */
export function assertMayHalt(person: HaltingPerson, { tenant, runId }: HaltScope): void {
  if (person.isOperator || tenant === person.tenant) return;
  if (runId !== undefined) {
    throw new NotFoundError('RUN_NOT_FOUND', `There is no run ${runId}.`, { run_id: runId });
  }
  throw operatorRequired(
    tenant === undefined
      ? 'Halting everything needs the role operator.'
      : 'Halting another tenant needs the role operator.',
  );
}

/** Whether a person is told of a halt: what stops the own tenant is no secret to its admins. */
export function maySeeHalt(person: HaltingPerson, { scope }: Pick<OwnedHalt, 'scope'>): boolean {
  return person.isOperator || scope.tenant === undefined || scope.tenant === person.tenant;
}

/**
 * Checks who may lift a halt: an admin one that was ordered within the own tenant for what belongs to
 * it, an operator every one. What an operator ordered from elsewhere no admin lifts.
 * @throws NotFoundError HALT_NOT_FOUND for those of others; PermissionDeniedError OPERATOR_REQUIRED
 */
export function assertMayLift(person: HaltingPerson, halt: OwnedHalt): void {
  if (!maySeeHalt(person, halt)) throw haltNotFound(halt.haltId);
  if (person.isOperator) return;
  if (halt.scope.tenant === person.tenant && halt.orderedFor === person.tenant) return;
  throw operatorRequired(`Lifting halt ${halt.haltId} needs the role operator.`);
}

/** The error for a halt that does not exist for its reader. */
export function haltNotFound(haltId: string): NotFoundError {
  return new NotFoundError('HALT_NOT_FOUND', `There is no halt ${haltId}.`, { halt_id: haltId });
}

function operatorRequired(sentence: string): PermissionDeniedError {
  return new PermissionDeniedError('OPERATOR_REQUIRED', sentence, { roles: 'operator' });
}
