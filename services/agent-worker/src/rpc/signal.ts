import type { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handler } from '@writ/rpc';
import type { Dependencies } from '../app/agents/dependencies.ts';
import { signalAgent } from '../app/agents/signal-agent.ts';
import { signalFrom } from '../wire/signal.ts';

/**
 * Accepts a signal for an agent and wakes the agent if it waits for the signal. The signal `halted` parks the agent if
 * this process runs it (RT-3).
 */
export function signal(
  dependencies: Dependencies,
): Handler<typeof AgentWorkerService.method.signal> {
  return async (request, call) => {
    assertServesTenant(call.caller, request.tenant);
    return { accepted: await signalAgent(dependencies, signalFrom(request, dependencies.ownTime)) };
  };
}
