import { OverloadedError } from '@writ/kernel';
import type { SupervisorTransaction } from '../supervisor-store.ts';

/**
 * Checks, in the transaction that would record another run, how many of its tenant are under way;
 * parked and ending ones count, too.
 * @param most undefined = unlimited
 * @throws OverloadedError RUN_QUOTA_EXCEEDED naming setting and limit
 */
export async function assertRunQuota(
  trx: SupervisorTransaction,
  tenant: string,
  most: number | undefined,
): Promise<void> {
  if (most === undefined) return;
  const counted = await trx
    .selectFrom('runs')
    .select((row) => row.fn.countAll().as('runs'))
    .where('tenant', '=', tenant)
    .where('ended_at', 'is', null)
    .executeTakeFirstOrThrow();
  const used = Number(counted.runs);
  if (used < most) return;
  throw new OverloadedError(
    'RUN_QUOTA_EXCEEDED',
    `Tenant ${tenant} has ${used} runs under way, and WRIT_TENANT_MAX_RUNS allows ${most}; start another when one has ended.`,
    { setting: 'WRIT_TENANT_MAX_RUNS', used: String(used), limit: String(most) },
  );
}
