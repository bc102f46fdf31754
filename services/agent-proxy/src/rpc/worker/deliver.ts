import type { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handler } from '@writ/rpc';
import { assertTenantServed, deliverAgent } from '../../app/agent/deliver-agent.ts';
import type { ProxyContext } from '../../context.ts';
import { deliveryFrom } from '../../wire/delivery.ts';

/** Stores an external agent (AP-1). */
export function deliver(context: ProxyContext): Handler<typeof AgentWorkerService.method.deliver> {
  return async (request, { caller }) => {
    assertServesTenant(caller, request.tenant);
    assertTenantServed(context, request.tenant);
    return { accepted: await deliverAgent(context, deliveryFrom(request, context.ownTime)) };
  };
}
