import type { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handler } from '@writ/rpc';
import { cancelAgents } from '../../app/agent/cancel-agents.ts';
import { loadAgent } from '../../app/agent/read-agents.ts';
import type { ProxyContext } from '../../context.ts';

/**
 * Ends the external agents of a run, or one of them (SUP-8). With `await_end`, ends nothing and returns whether the
 * agent has ended.
 */
export function cancel(context: ProxyContext): Handler<typeof AgentWorkerService.method.cancel> {
  return async (request, { caller }) => {
    const { requestId, tenant, runId, agentInstance: instance, stopReason } = request;
    assertServesTenant(caller, tenant);
    if (request.awaitEnd) {
      const { ended_at: endedAt } = await loadAgent(context, { tenant, runId, instance });
      return { hasEnded: endedAt !== null };
    }
    const order = { requestId, tenant, runId, instance, stopReason };
    return { ended: await cancelAgents(context, order) };
  };
}
