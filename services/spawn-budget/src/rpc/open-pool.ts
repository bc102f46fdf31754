import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  OpenPoolRequestSchema,
  type SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { assertServesTenant } from '@writ/identity';
import { createSpawnBudget } from '@writ/kernel';
import type { Handlers } from '@writ/rpc';
import { openPool as open } from '../app/pool/open-pool.ts';
import { signedSlot } from '../app/slot/slot-grants.ts';
import type { SpawnBudgetContext } from '../context.ts';
import { agentRefOf, priorityOf, requestDigest } from '../wire/requests.ts';

/** Opens a run's pool with the root in its first slot (SB-1). */
export function openPool(
  context: SpawnBudgetContext,
): Handlers<typeof SpawnBudgetService>['openPool'] {
  return async (request, { caller, traceparent }) => {
    const { tenant, runId, sessionId, requestId, deadline } = request;
    assertServesTenant(caller, tenant);
    const event = {
      root: agentRefOf(request.root, 'root'),
      priority: priorityOf(request.priority),
      budget: createSpawnBudget(request.budget, 'budget'),
      ...(deadline && { deadline: timestampMs(deadline) }),
    };
    const digest = requestDigest(OpenPoolRequestSchema, request);
    const key = { tenant, runId, requestId, digest, traceparent, sessionId };
    return { slot: await signedSlot(context, await open(context.repository, key, event)) };
  };
}
