import { PermissionDeniedError } from '@writ/kernel';

/** A person with the tenant and the roles of the credentials. */
interface Actor {
  readonly tenant: string;
  readonly roles: readonly string[];
}

/**
 * Returns the tenant whose usage a request reads: the reader's own tenant when `tenant` is empty. Only an operator may
 * read the usage of another tenant (SYS-6).
 * @throws PermissionDeniedError OPERATOR_REQUIRED
 */
export function readableTenant({ tenant: own, roles }: Actor, tenant: string): string {
  if (tenant === '' || tenant === own || roles.includes('operator')) return tenant || own;
  throw operatorRequired('Reading the usage of another tenant requires the role operator.');
}

/**
 * Returns the tenant in which a request makes a change: the actor's own tenant when `tenant` is empty. Only an operator
 * may make changes in another tenant (SYS-6).
 * @throws PermissionDeniedError OPERATOR_REQUIRED
 */
export function affectedTenant({ tenant: own, roles }: Actor, tenant: string): string {
  if (tenant === '' || tenant === own || roles.includes('operator')) return tenant || own;
  throw operatorRequired('Changing another tenant requires the role operator.');
}

/**
 * Returns the tenant whose caps a request sets. An admin of the tenant may set the caps of its runs and sessions; the
 * caps of the tenant itself require an operator (EM-3).
 * @throws PermissionDeniedError OPERATOR_REQUIRED
 */
export function cappedTenant(actor: Actor, tenant: string, isBelowTenant: boolean): string {
  if (isBelowTenant || actor.roles.includes('operator')) return affectedTenant(actor, tenant);
  throw operatorRequired('Setting the caps of a tenant requires the role operator.');
}

function operatorRequired(sentence: string): PermissionDeniedError {
  return new PermissionDeniedError('OPERATOR_REQUIRED', sentence, { roles: 'operator' });
}
