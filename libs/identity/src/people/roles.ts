import type { Role } from '@writ/rpc';

/** Every role; see {@link Role}. */
export const ROLES: readonly Role[] = [
  'caller',
  'approver',
  'auditor',
  'admin',
  'operator',
  'agent',
];

/** Whether `value` is a role. */
export function isRole(value: unknown): value is Role {
  return ROLES.some((role) => role === value);
}
