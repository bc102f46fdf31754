import type { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { loadRun } from '../../store/run/runs.ts';

/**
 * GetPool: who holds, lost or waits for a slot of a run of the caller's tenant (SB-1).
 * @throws NotFoundError RUN_NOT_FOUND; POOL_NOT_FOUND before the run has started
 */
export function getPool({
  store,
  peers,
}: SupervisorContext): Handler<typeof UsageService.method.getPool> {
  return async ({ runId }, call) => {
    const run = { tenant: requirePerson(call).tenant, runId };
    await loadRun(store.db, run);
    const { pool } = await peers.spawnBudget.getPool(run);
    return { ...(pool && { pool }) };
  };
}
