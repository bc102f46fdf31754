import { OverloadedError } from '@writ/kernel';
import { prepareQuery } from '@writ/store';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/**
 * Checks in the transaction that records a new run whether the tenant is below its limit of runs in progress, which
 * include parked and ending runs.
 * @param most limit of runs in progress; undefined = unlimited
 * @throws OverloadedError RUN_QUOTA_EXCEEDED naming the setting and the limit
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
