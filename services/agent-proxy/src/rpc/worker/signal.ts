import type { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handler } from '@writ/rpc';
import { signalAgent } from '../../app/agent/signal-agent.ts';
import type { ProxyContext } from '../../context.ts';

/** Wakes the requests of this process that wait for an approval, or aborts those of a halted agent (AP-4). */
export function signal(context: ProxyContext): Handler<typeof AgentWorkerService.method.signal> {
  return async ({ tenant, runId, agentInstance: instance, name }, { caller }) => {
    assertServesTenant(caller, tenant);
    return { accepted: await signalAgent(context, { tenant, runId, instance }, name) };
  };
}
