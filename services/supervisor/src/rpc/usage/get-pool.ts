import type { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { readPool } from '../../app/usage/read-usage.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * GetPool: returns the agents that hold, lost or wait for a slot in a run of the caller's tenant (SB-1).
 * @throws NotFoundError RUN_NOT_FOUND; POOL_NOT_FOUND before the run has started
 */
export function getPool(context: SupervisorContext): Handler<typeof UsageService.method.getPool> {
  return async ({ runId }, call) => {
    const { pool } = await readPool(context, { tenant: requirePerson(call).tenant, runId });
    return { ...(pool && { pool }) };
  };
}
