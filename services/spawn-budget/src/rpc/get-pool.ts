import type { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handlers } from '@writ/rpc';
import type { SpawnBudgetContext } from '../context.ts';
import { poolMessage } from '../wire/pool.ts';

/**
 * Reads a pool. The call first ends expired leases, so that an agent with an expired lease is not listed with a slot
 * (SB-8).
 * @throws NotFoundError POOL_NOT_FOUND
 */
export function getPool({
  repository,
}: SpawnBudgetContext): Handlers<typeof SpawnBudgetService>['getPool'] {
  return async ({ tenant, runId }, { caller }) => {
    assertServesTenant(caller, tenant);
    const key = { tenant, runId };
    const pool = await repository.transaction([key], async (pools) => pools.current(key));
    return { pool: poolMessage(key, pool) };
  };
}
