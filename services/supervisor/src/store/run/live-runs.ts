import { OverloadedError } from '@writ/kernel';
import { prepareQuery } from '@writ/store';
import type { StoredRunState } from '../schema/run.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';
import type { RunRow } from './runs.ts';

/** Live runs past their deadline, without an ending, of all tenants. */
export async function overdueRuns(db: SupervisorReader, now: Date): Promise<RunRow[]> {
  return await db
    .selectFrom('runs')
    .selectAll()
    .where('ended_at', 'is', null)
    .where('deadline_at', '<=', now)
    .where('state', '!=', 'ENDING')
    .orderBy('deadline_at')
    .execute();
}

/** States of a run that has started and is not suspended or parked. */
export const ACTIVE_RUN_STATES = ['RUNNING', 'ENDING'] as const satisfies readonly StoredRunState[];

/** The runs of all tenants that have started, and neither ended nor wait for a person, a signal or a timer. */
export async function activeRuns(
  db: SupervisorReader,
): Promise<Pick<RunRow, 'tenant' | 'run_id'>[]> {
  return await db
    .selectFrom('runs')
    .select(['tenant', 'run_id'])
    .where('ended_at', 'is', null)
    .where('state', 'in', ACTIVE_RUN_STATES)
    .execute();
}

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
