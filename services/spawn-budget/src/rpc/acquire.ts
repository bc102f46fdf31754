import {
  AcquireRequestSchema,
  type SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handlers } from '@writ/rpc';
import { acquireSlot } from '../app/slot/change-slot.ts';
import type { SpawnBudgetContext } from '../context.ts';
import type { AcquireEvent } from '../domain/pool/events.ts';
import { agentRefOf, priorityOf, requestDigest } from '../wire/requests.ts';
import { changeMessage } from '../wire/slot.ts';

/** Acquires a slot for an agent (SB-2, SB-7, SB-9). */
export function acquire(
  context: SpawnBudgetContext,
): Handlers<typeof SpawnBudgetService>['acquire'] {
  return async (request, { caller }) => {
    const { tenant, runId, requestId } = request;
    assertServesTenant(caller, tenant);
    const event: AcquireEvent = {
      type: 'acquire',
      agent: agentRefOf(request.agent, 'agent'),
      parent: agentRefOf(request.parent, 'parent'),
      depth: request.depth,
      priority: priorityOf(request.priority),
    };
    const { instance } = event.agent;
    const digest = requestDigest(AcquireRequestSchema, request);
    const key = { tenant, runId, instance, rpc: 'acquire', requestId, digest } as const;
    const { slot, changes } = await acquireSlot(context, key, event);
    return { slot, changes: changes.map(changeMessage) };
  };
}
