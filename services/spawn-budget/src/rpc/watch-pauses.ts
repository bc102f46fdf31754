import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handlers } from '@writ/rpc';
import type { SpawnBudgetContext } from '../context.ts';
import { changeMessage } from '../wire/slot.ts';

/**
 * Streams the pauses and resumptions of the requested tenants that this process commits (SB-4). Delivery is best
 * effort: Renew reports changes that another replica committed or that a slow stream missed.
 * @throws PermissionDeniedError TENANT_NOT_SERVED (SYS-6)
 */
export function watchPauses({
  feed,
}: SpawnBudgetContext): Handlers<typeof SpawnBudgetService>['watchPauses'] {
  return async function* ({ tenants }, { caller, signal }) {
    for (const tenant of tenants) assertServesTenant(caller, tenant);
    for await (const { tenant, runId, change, at } of feed.watch(tenants, signal))
      yield { tenant, runId, change: changeMessage(change), changeTime: timestampFromDate(at) };
  };
}
