import {
  AgentState,
  type AgentWorkerService,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handler } from '@writ/rpc';
import type { Dependencies } from '../app/agents/dependencies.ts';
import { describeAgents } from '../app/agents/describe-agents.ts';

/** Describes the agents of a run (AG-7). */
export function describeRun(
  dependencies: Dependencies,
): Handler<typeof AgentWorkerService.method.describeRun> {
  return async ({ tenant, runId }, call) => {
    assertServesTenant(call.caller, tenant);
    const agents = await describeAgents(dependencies, { tenant, runId });
    return {
      agents: agents.map((agent) => ({
        ...agent,
        state: AgentState[agent.state],
        journalLength: BigInt(agent.journalLength),
        waitingFor: [...agent.waitingFor],
      })),
    };
  };
}
