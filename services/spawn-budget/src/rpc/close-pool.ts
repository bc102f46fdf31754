import type { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handlers } from '@writ/rpc';
import { closePool as close } from '../app/pool/open-pool.ts';
import type { SpawnBudgetContext } from '../context.ts';
import { poolMessage } from '../wire/pool.ts';

/** Releases every slot of a run that has ended. */
export function closePool({
  repository,
}: SpawnBudgetContext): Handlers<typeof SpawnBudgetService>['closePool'] {
  return async ({ tenant, runId, requestId, mayWait }, { caller, traceparent }) => {
    assertServesTenant(caller, tenant);
    const key = { tenant, runId, requestId, digest: '', traceparent, sessionId: '' };
    return { pool: poolMessage(key, await close(repository, key, mayWait)) };
  };
}
