import { newApiKey } from '@writ/identity';
import type { Person } from '@writ/rpc';

/** Subject that starts the runs of the demo; a later start follows the unfinished runs of this subject only. */
export const DEMO_SUBJECT = 'demo';
/** Subject of the simulated approver, so that the audit record names no person for a decision of a program. */
export const SIMULATED_SUBJECT = 'demo:simulated';

/** The two identities of the demo. Their keys exist only in memory until the process exits. */
export interface DemoPeople {
  readonly starterKey: string;
  readonly simulatedKey: string;
  readonly keys: ReadonlyMap<string, Person>;
}

/** Creates the identities of the demo: one may only start and read runs, the other may only decide approvals. */
export function createDemoPeople(): DemoPeople {
  const starterKey = newApiKey();
  const simulatedKey = newApiKey();
  return {
    starterKey,
    simulatedKey,
    keys: new Map<string, Person>([
      [starterKey, { subject: DEMO_SUBJECT, tenant: 'default', roles: ['caller'] }],
      [simulatedKey, { subject: SIMULATED_SUBJECT, tenant: 'default', roles: ['approver'] }],
    ]),
  };
}
