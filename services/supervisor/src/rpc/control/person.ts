import type { Person } from '@writ/rpc';
import type { HaltingPerson } from '../../domain/halt/halt-rights.ts';

/** A caller as halts know people. */
export function personOf({ tenant, roles }: Person): HaltingPerson {
  return { tenant, isOperator: roles.includes('operator') };
}
