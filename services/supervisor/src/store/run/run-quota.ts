import { OverloadedError } from '@writ/kernel';
import { prepareQuery } from '@writ/store';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/**
 * Checks the number of a tenant's runs in progress, which includes parked and ending ones, in the transaction that
 * records another run.
 * @param most undefined = unlimited
 * @throws OverloadedError RUN_QUOTA_EXCEEDED naming setting and limit
 */
export async function assertRunQuota(
  trx: SupervisorTransaction,
  tenant: string,
  most: number | undefined,
): Promise<void> {
  if (most === undefined) return;
  const [counted] = (await countLiveRuns(trx, { tenant })).rows;
  const used = Number(counted?.runs ?? 0);
  if (used < most) return;
  throw new OverloadedError(
    'RUN_QUOTA_EXCEEDED',
    `Tenant ${tenant} has ${used} runs in progress, and WRIT_TENANT_MAX_RUNS is ${most}; retry when a run has ended.`,
    { setting: 'WRIT_TENANT_MAX_RUNS', used: String(used), limit: String(most) },
  );
}

const countLiveRuns = prepareQuery(
  (db: SupervisorReader, { tenant }: { readonly tenant: string }) =>
    db
      .selectFrom('runs')
      .select((row) => row.fn.countAll().as('runs'))
      .where('tenant', '=', tenant)
      .where('ended_at', 'is', null),
);
