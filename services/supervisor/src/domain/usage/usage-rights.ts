import { PermissionDeniedError } from '@writ/kernel';

/** A person with the tenant and the roles of the credentials. */
interface Reader {
  readonly tenant: string;
  readonly roles: readonly string[];
}

/**
 * Returns the tenant whose usage a request reads: the reader's own when `tenant` is empty. Only an operator reads
 * another one (SYS-6).
 * @throws PermissionDeniedError OPERATOR_REQUIRED
 */
export function readableTenant({ tenant: own, roles }: Reader, tenant: string): string {
  if (tenant === '' || tenant === own || roles.includes('operator')) return tenant || own;
  throw new PermissionDeniedError(
    'OPERATOR_REQUIRED',
    'Reading the usage of another tenant requires the role operator.',
    { field: 'tenant', roles: 'operator' },
  );
}
