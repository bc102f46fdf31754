import {
  ReleaseRequestSchema,
  type SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handlers } from '@writ/rpc';
import { releaseSlot } from '../app/slot/change-slot.ts';
import type { SpawnBudgetContext } from '../context.ts';
import { requestDigest } from '../wire/requests.ts';
import { changeMessage } from '../wire/slot.ts';

/** Releases an agent's slot (SB-3, SB-4). */
export function release(
  context: SpawnBudgetContext,
): Handlers<typeof SpawnBudgetService>['release'] {
  return async (request, { caller }) => {
    const { tenant, runId, requestId, agentInstance: instance } = request;
    assertServesTenant(caller, tenant);
    const digest = requestDigest(ReleaseRequestSchema, request);
    const key = { tenant, runId, instance, rpc: 'release', requestId, digest } as const;
    const { released, changes } = await releaseSlot(context, key);
    return { released: released === true, changes: changes.map(changeMessage) };
  };
}
