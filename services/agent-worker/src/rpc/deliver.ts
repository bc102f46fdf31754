import type { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handler } from '@writ/rpc';
import { assertTenantServed, deliverAgent } from '../app/agents/deliver-agent.ts';
import type { Dependencies } from '../app/agents/dependencies.ts';
import { deliveryFrom } from '../wire/delivery.ts';

/** Accepts a new agent and its first message (RT-3). */
export function deliver(
  dependencies: Dependencies,
): Handler<typeof AgentWorkerService.method.deliver> {
  return async (request, call) => {
    assertServesTenant(call.caller, request.tenant);
    assertTenantServed(dependencies, request.tenant);
    return {
      accepted: await deliverAgent(dependencies, deliveryFrom(request, dependencies.ownTime)),
    };
  };
}
