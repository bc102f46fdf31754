import type { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handlers } from '@writ/rpc';
import type { SpawnBudgetContext } from '../../context.ts';
import { poolMessage } from '../messages/pool.ts';

/**
 * Reads a pool. Leases that lapsed lapse here too, so that nobody is shown who lost its slot (SB-8).
 * @throws NotFoundError POOL_NOT_FOUND
 */
export function getPool(
  context: SpawnBudgetContext,
): Handlers<typeof SpawnBudgetService>['getPool'] {
  return async ({ tenant, runId }, { caller }) => {
    assertServesTenant(caller, tenant);
    const key = { tenant, runId };
    const pool = await context.ledger.transaction([key], async (books) => books.look(key));
    return { pool: poolMessage(key, pool) };
  };
}
