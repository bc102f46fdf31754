import {
  ReprioritizeRequestSchema,
  type SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handlers } from '@writ/rpc';
import { reprioritizeSlot } from '../app/slot/change-slot.ts';
import type { SpawnBudgetContext } from '../context.ts';
import type { ReprioritizeEvent } from '../domain/pool/events.ts';
import { priorityOf, requestDigest } from '../wire/requests.ts';
import { changeMessage } from '../wire/slot.ts';

/** Changes the priority of an agent (SB-5). */
export function reprioritize(
  context: SpawnBudgetContext,
): Handlers<typeof SpawnBudgetService>['reprioritize'] {
  return async (request, { caller }) => {
    const { tenant, runId, requestId, agentInstance: instance } = request;
    assertServesTenant(caller, tenant);
    const event: ReprioritizeEvent = {
      type: 'reprioritize',
      instance,
      priority: priorityOf(request.priority),
    };
    const digest = requestDigest(ReprioritizeRequestSchema, request);
    const key = { tenant, runId, instance, rpc: 'reprioritize', requestId, digest } as const;
    const { slot, changes } = await reprioritizeSlot(context, key, event);
    return { slot, changes: changes.map(changeMessage) };
  };
}
